package main

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"
)

const certificateOptions = `
debug flag
config,c text
data-dir,d text =/var/lib/rancher/k3s
service,s list
output,o text =text
server text K3S_URL =https://127.0.0.1:6443
token,t text K3S_TOKEN
path text
force,f flag
`

// certificateFiles are by service, in the folder of servers or, with a slash at the beginning, in that of agents.
var certificateFiles = map[string][]string{
	"admin":              {"client-admin"},
	"api-server":         {"client-kube-apiserver", "serving-kube-apiserver"},
	"controller-manager": {"client-controller", "kube-controller-manager/kube-controller-manager"},
	"scheduler":          {"client-scheduler", "kube-scheduler/kube-scheduler"},
	"supervisor":         {"client-supervisor"},
	"cloud-controller":   {"client-k3s-cloud-controller"},
	"etcd":               {"etcd/client", "etcd/server-client", "etcd/peer-server-client"},
	"auth-proxy":         {"client-auth-proxy"},
	"kubelet":            {"/client-kubelet", "/serving-kubelet"},
	"kube-proxy":         {"client-kube-proxy", "/client-kube-proxy"},
	"k3s-controller":     {"client-k3s-controller", "/client-k3s-controller"},
	"k3s-server":         {"dynamic-cert.json"},
}

var agentServices = []string{"k3s-controller", "kube-proxy", "kubelet"}

// manageCertificates is `k3s certificate`.
func manageCertificates(arguments []string) error {
	if len(arguments) == 0 {
		usage(os.Stdout)
		return nil
	}
	s, err := parse(optionsOf(certificateOptions), arguments[1:])
	if err != nil {
		return incorrect(err)
	}
	switch arguments[0] {
	case "check":
		return checkCertificates(s)
	case "rotate":
		return rotateCertificates(s)
	case "rotate-ca":
		return rotateAuthorities(s)
	}
	return noTopic(arguments[0])
}

// servicesOf are those that are named, or all of the machine.
func servicesOf(s *settings, doing string) ([]string, error) {
	services := s.list("service")
	for _, service := range services {
		if certificateFiles[service] == nil {
			return nil, errors.New("service " + service + " is not recognized")
		}
	}
	if len(services) > 0 {
		return services, nil
	}
	if !exists(filepath.Join(s.text("data-dir"), "server")) {
		info("Agent detected, %s agent certificates", doing)
		return agentServices, nil
	}
	info("Server detected, %s agent and server certificates", doing)
	for service := range certificateFiles {
		services = append(services, service)
	}
	slices.Sort(services)
	return services, nil
}

func filesOf(s *settings, services []string) []string {
	var files []string
	for _, service := range services {
		for _, name := range certificateFiles[service] {
			folder := filepath.Join(s.text("data-dir"), "server", "tls")
			if strings.HasPrefix(name, "/") {
				folder = filepath.Join(s.text("data-dir"), "agent")
			}
			files = append(files, filepath.Join(folder, name))
		}
	}
	return files
}

type certificateInfo struct {
	Filename, Subject, Issuer string
	Usages                    []string
	ExpiryTime                time.Time
	ResidualTime              time.Duration
	Status                    string
}

func checkCertificates(s *settings) error {
	services, err := servicesOf(s, "checking")
	if err != nil {
		return err
	}
	var found []certificateInfo
	for _, file := range filesOf(s, services) {
		chain, err := readChain(file + ".crt")
		if err != nil {
			continue
		}
		for _, one := range chain {
			found = append(found, describe(filepath.Base(file)+".crt", one))
		}
	}
	switch s.text("output") {
	case "json":
		return json.NewEncoder(os.Stdout).Encode(object{"Certificates": found})
	case "yaml":
		return yaml.NewEncoder(os.Stdout).Encode(object{"certificates": found})
	case "table":
		out := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
		defer out.Flush()
		fmt.Fprint(out, "\nFILENAME\tSUBJECT\tUSAGES\tEXPIRES\tRESIDUAL TIME\tSTATUS\n--------\t-------\t------\t-------\t-------------\t------\n")
		for _, one := range found {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d days\t%s\n", one.Filename, one.Subject, strings.Join(one.Usages, ","),
				one.ExpiryTime.Format("Jan 02, 2006 15:04 MST"), int(one.ResidualTime.Hours()/24), one.Status)
		}
		return nil
	case "text":
		for _, one := range found {
			say(one)
		}
		return nil
	}
	return fmt.Errorf("invalid output format %s", s.text("output"))
}

func describe(file string, one *x509.Certificate) certificateInfo {
	var usages []string
	for _, usage := range one.ExtKeyUsage {
		usages = append(usages, map[x509.ExtKeyUsage]string{x509.ExtKeyUsageClientAuth: "ClientAuth", x509.ExtKeyUsageServerAuth: "ServerAuth"}[usage])
	}
	if one.IsCA {
		usages = append(usages, "CertSign")
	}
	left, status := time.Until(one.NotAfter), "OK"
	if left < 0 {
		status = "EXPIRED"
	} else if left < renewDays*24*time.Hour {
		status = "WARNING"
	}
	return certificateInfo{file, one.Subject.CommonName, one.Issuer.CommonName, usages, one.NotAfter, left, status}
}

func say(one certificateInfo) {
	usages, end := strings.Join(one.Usages, ","), one.ExpiryTime.Format(time.RFC3339)
	switch one.Status {
	case "EXPIRED":
		problem("%s: certificate %s (%s) expired at %s", one.Filename, one.Subject, usages, end)
	case "WARNING":
		warn("%s: certificate %s (%s) will expire within %d days at %s", one.Filename, one.Subject, usages, renewDays, end)
	default:
		info("%s: certificate %s (%s) is ok, expires at %s", one.Filename, one.Subject, usages, end)
	}
}

// rotateCertificates deletes certificates after a copy; the next start makes them anew.
func rotateCertificates(s *settings) error {
	services, err := servicesOf(s, "rotating")
	if err != nil {
		return err
	}
	data := s.text("data-dir")
	server, kept := filepath.Join(data, "server"), fmt.Sprintf("tls-%d", time.Now().Unix())
	target := filepath.Join(data, "agent", kept)
	if exists(filepath.Join(server, "tls")) {
		target = filepath.Join(server, kept)
		if output, err := exec.Command("cp", "-a", filepath.Join(server, "tls"), target).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
	}
	for _, service := range services {
		info("Rotating certificates for %s", service)
		if service == "k3s-server" {
			info("Rotating dynamic listener certificate")
			if err := store(filepath.Join(server, "tls", "dynamic-cert-regenerate"), nil, 0o600); err != nil {
				return err
			}
		}
	}
	for _, file := range filesOf(s, services) {
		for _, suffix := range []string{".crt", ".key"} {
			content, err := os.ReadFile(file + suffix)
			if err != nil {
				continue
			}
			if strings.HasPrefix(file, filepath.Join(data, "agent")) {
				if err := store(filepath.Join(target, filepath.Base(file)+suffix), content, 0o600); err != nil {
					return err
				}
			}
			if err := os.Remove(file + suffix); err != nil {
				return err
			}
		}
	}
	info("Successfully backed up certificates to %s, please restart k3s server or agent to rotate certificates", target)
	return nil
}
