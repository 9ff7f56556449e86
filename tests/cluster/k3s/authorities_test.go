// Copyright (c) 2026 hwaccel.gpu contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certified is an authority for the key of another one, or for a new one, that `by` has signed, or it itself.
func certified(t *testing.T, name string, by, of *signer) *signer {
	t.Helper()
	made := &signer{}
	if of != nil {
		made.key = of.key
	} else {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		failed(err)
		made.key = key
	}
	identifier := sha256.Sum256(elliptic.MarshalCompressed(elliptic.P256(), made.key.X, made.key.Y))
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, SubjectKeyId: identifier[:20],
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	parent, key := template, made.key
	if by != nil {
		parent, key = by.certificate, by.key
	} else {
		template.AuthorityKeyId = template.SubjectKeyId
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, made.key.Public(), key)
	failed(err)
	made.certificate, err = x509.ParseCertificate(der)
	failed(err)
	return made
}

// rotation is the bundle of before, and one after it, with its key, and its root.
func rotation(t *testing.T) (before, after []byte, issuing, root *signer) {
	t.Helper()
	ca := authority(filepath.Join(t.TempDir(), "ca"))
	if _, err := ensureAuthority(ca, "k3s-server"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(ca.certificateFile())
	failed(err)
	key, err := readKey(ca.keyFile())
	failed(err)
	chain, err := parseChain(before)
	failed(err)
	old := &signer{chain[0], key.(*ecdsa.PrivateKey)}
	root = certified(t, "root", nil, nil)
	crossed, issuing := certified(t, "root", old, root), certified(t, "ca", root, nil)
	return before, encodeCertificates(issuing.certificate, crossed.certificate, root.certificate, old.certificate), issuing, root
}

func TestCAHash(t *testing.T) {
	before, after, _, root := rotation(t)
	digest := func(content []byte) string {
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	expect(t, caHash(before), digest(before))
	expect(t, caHash(after), digest(root.certificate.Raw))
	expect(t, caHash([]byte("text")), digest([]byte("text")))
}

func refusal(before, after map[string]sharedFile, names ...string) string {
	if err := validateAuthorities(before, after, names); err != nil {
		return err.Error()
	}
	return ""
}

func TestNewAuthoritiesAreValidated(t *testing.T) {
	before, after, issuing, root := rotation(t)
	_, stranger, _, _ := rotation(t)
	file := func(content []byte) sharedFile { return sharedFile{Content: content} }
	old := map[string]sharedFile{"ServerCA": file(before)}
	keys := slices.Concat(encodeKey(issuing.key), encodeKey(root.key))
	check := func(bundle, keys []byte) string {
		return refusal(old, map[string]sharedFile{"ServerCA": file(bundle), "ServerCAKey": file(keys)}, "ServerCA", "ServerCAKey")
	}
	expect(t, check(after, keys), "")
	contains(t, check(stranger, keys), "ServerCA: new CA cert cannot be verified using old CA chain: x509: ")
	contains(t, check(encodeCertificates(issuing.certificate), keys), "new CA bundle contains only a single certificate")
	contains(t, check(after, encodeKey(root.key)), "ServerCAKey: new CA cert and key cannot be loaded as X590KeyPair")
}

func TestServiceKeysAreValidated(t *testing.T) {
	made := func() []byte {
		path := filepath.Join(t.TempDir(), "service.key")
		failed(ensureServiceKey(path, path+".current"))
		content, err := os.ReadFile(path)
		failed(err)
		return content
	}
	old, given := made(), made()
	expect(t, validateServiceKey(old, slices.Concat(given, old)), nil)
	expect(t, validateServiceKey(old, given).Error(), "old ServiceAccount signing key not in new ServiceAccount key list")
}

// A node has a certificate of the new authority before all servers do.
func TestClientsSendWhatConnectsTheirAuthority(t *testing.T) {
	before, after, issuing, _ := rotation(t)
	c := &cluster{folder: t.TempDir()}
	failed(store(c.ca("client-ca").certificateFile(), before, 0o644))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	failed(err)
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "system:node:a1", Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuing.certificate, key.Public(), issuing.key)
	failed(err)
	leaf, err := x509.ParseCertificate(der)
	failed(err)
	chain, err := parseChain(after)
	failed(err)
	ask := func(shown ...*x509.Certificate) (*identified, error) {
		return c.identify(&http.Request{TLS: &tls.ConnectionState{PeerCertificates: shown}})
	}
	who, err := ask(append([]*x509.Certificate{leaf}, chain...)...)
	failed(err)
	expect(t, who.node(), "a1")
	if _, err := ask(leaf); err == nil {
		t.Fatal("the server cannot know it without the others")
	}
}

func TestFilesOfOthersAreNoAuthorities(t *testing.T) {
	for name := range sharedFiles {
		expect(t, slices.Contains(rotated, name), strings.Contains(name, "CA") || name == "ServiceKey")
	}
}
