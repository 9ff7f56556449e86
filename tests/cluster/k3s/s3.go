package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
)

// s3Options are those of S3 with their defaults, without the name of the Secret, which is not compared.
var s3Options = map[string]string{
	"etcd-s3-endpoint": "s3.amazonaws.com", "etcd-s3-endpoint-ca": "", "etcd-s3-skip-ssl-verify": "", "etcd-s3-access-key": "", "etcd-s3-secret-key": "",
	"etcd-s3-session-token": "", "etcd-s3-bucket": "", "etcd-s3-bucket-lookup-type": "", "etcd-s3-region": "us-east-1", "etcd-s3-folder": "", "etcd-s3-proxy": "",
	"etcd-s3-insecure": "", "etcd-s3-timeout": "5m0s",
}

// errNoSecret is no failure of a snapshot: the Secret may come later.
var errNoSecret = errors.New("failed to get etcd S3 config secret")

// s3Settings are what configuration and arguments say of S3, nil if snapshots stay here.
func s3Settings(s *settings) map[string]string {
	if !s.on("etcd-s3") && !s.on("s3") {
		return nil
	}
	found := map[string]string{"etcd-s3-config-secret": s.text("etcd-s3-config-secret")}
	for name := range s3Options {
		found[name] = s.text(name)
	}
	return found
}

// upload takes a snapshot to S3 as far as the stand-in can: it has no client for it. The snapshot on disk is good in any case.
func (c *cluster) upload(ctx context.Context, given map[string]string, name string) {
	if given == nil {
		return
	}
	settings, err := s3Configuration(given, func(secret string) (object, error) {
		return c.api.get(ctx, "/api/v1/namespaces/kube-system/secrets/"+secret)
	})
	if err != nil {
		warn("Unable to initialize S3 client: %v", err)
		return
	}
	scheme := "https://"
	if settings["etcd-s3-insecure"] == "true" {
		scheme = "http://"
	}
	info("Attempting to create new S3 client for endpoint=%q bucket=%q folder=%q", scheme+settings["etcd-s3-endpoint"], settings["etcd-s3-bucket"], settings["etcd-s3-folder"])
	info("Checking if S3 bucket %s exists", settings["etcd-s3-bucket"])
	warn("Unable to initialize S3 client: failed to test for existence of bucket %s: the stand-in has no S3, %s stays here", settings["etcd-s3-bucket"], name)
}

// s3Configuration is that of the Secret, unless anything else is set. The stand-in reads no ConfigMap of certificates.
func s3Configuration(given map[string]string, read func(string) (object, error)) (map[string]string, error) {
	secret, found := given["etcd-s3-config-secret"], maps.Clone(given)
	isDefault := true
	for name, usual := range s3Options {
		isDefault = isDefault && (given[name] == usual || given[name] == "")
	}
	switch {
	case secret != "" && !isDefault:
		warn("Ignoring s3 configuration from etcd-s3-config-secret %q due to existing configuration from CLI or config file", secret)
	case secret == "" && isDefault:
		return nil, errors.New("s3 configuration was not set")
	case secret != "":
		stored, err := read(secret)
		if err != nil {
			return nil, fmt.Errorf("failed to get config from etcd-s3-config-secret %q: %w: %w", secret, errNoSecret, err)
		}
		for name, usual := range s3Options {
			if value, err := base64.StdEncoding.DecodeString(field(stored, "data", name)); err == nil && len(value) > 0 {
				usual = string(value)
			}
			found[name] = usual
		}
		info("Using etcd s3 configuration from etcd-s3-config-secret %q", secret)
	}
	if found["etcd-s3-bucket"] == "" {
		return nil, errors.New("s3 bucket name was not set")
	}
	return found, nil
}
