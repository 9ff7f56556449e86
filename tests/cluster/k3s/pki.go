package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	// Certificates that end within these days are made anew at each start.
	renewDays = 120
	yearDays  = 365
	// Of K3s' library for certificates: days that new certificates are valid.
	daysVariable = "CATTLE_NEW_SIGNED_CERT_EXPIRATION_DAYS"
)

// authority is a CA by its files without the suffixes .crt and .key.
type authority string

func (a authority) certificateFile() string { return string(a) + ".crt" }
func (a authority) keyFile() string         { return string(a) + ".key" }

func exists(paths ...string) bool {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

func store(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func encodeCertificates(chain ...*x509.Certificate) []byte {
	var content []byte
	for _, one := range chain {
		content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	return content
}

func encodeKey(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalECPrivateKey(key)
	failed(err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func readChain(path string) ([]*x509.Certificate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseChain(content)
}

func parseChain(content []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, one)
	}
	if len(chain) == 0 {
		return nil, errors.New("data does not contain any valid RSA or ECDSA certificates")
	}
	return chain, nil
}

func readKey(path string) (crypto.Signer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return nil, fmt.Errorf("data does not contain a valid RSA or ECDSA private key: %s", path)
		}
		if key, err := parseKey(block.Bytes); err == nil {
			return key, nil
		}
	}
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	return key.(crypto.Signer), nil
}

// ensureAuthority makes a CA unless it exists. Whether it has made one.
func ensureAuthority(files authority, prefix string) (bool, error) {
	if exists(files.certificateFile(), files.keyFile()) {
		return false, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, err
	}
	now := time.Now().UTC()
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s-ca@%d", prefix, now.Unix())},
		NotBefore:             now,
		NotAfter:              now.Add(10 * yearDays * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return false, err
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return false, err
	}
	if err := store(files.keyFile(), encodeKey(key), 0o600); err != nil {
		return false, err
	}
	return true, store(files.certificateFile(), encodeCertificates(made), 0o644)
}

func serial() *big.Int {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	failed(err)
	return number
}

// request is what a certificate is for.
type request struct {
	name   string
	groups []string
	// Names and addresses that a server is reached by.
	sans   []string
	server bool
	client bool
	// Whether a certificate of another authority stays.
	stays bool
}

// sign makes a certificate for a key, followed by those of the CA.
func (a authority) sign(wanted request, public crypto.PublicKey) ([]byte, error) {
	key, err := readKey(a.keyFile())
	if err != nil {
		return nil, err
	}
	chain, err := readChain(a.certificateFile())
	if err != nil {
		return nil, err
	}
	days := yearDays
	if given, err := strconv.Atoi(os.Getenv(daysVariable)); err == nil && given > 0 {
		days = given
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: wanted.name, Organization: wanted.groups},
		NotBefore:    chain[0].NotBefore,
		NotAfter:     time.Now().Add(time.Duration(days) * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
	}
	for _, san := range wanted.sans {
		if address := net.ParseIP(san); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, san)
		}
	}
	if wanted.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if wanted.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, chain[0], public, key)
	if err != nil {
		return nil, err
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return encodeCertificates(append([]*x509.Certificate{made}, chain...)...), nil
}

// ensure makes a certificate if there is none, if it ends soon, or if it differs from what is wanted. Whether it has made one.
func (a authority) ensure(again bool, wanted request, certificateFile, keyFile string) (bool, error) {
	if !again && exists(certificateFile, keyFile) && !a.outdated(wanted, certificateFile) {
		return false, nil
	}
	key, err := ensureKey(keyFile, again)
	if err != nil {
		return false, err
	}
	content, err := a.sign(wanted, key.Public())
	if err != nil {
		return false, err
	}
	return true, store(certificateFile, content, 0o644)
}

func ensureKey(path string, again bool) (crypto.Signer, error) {
	if !again && exists(path) {
		return readKey(path)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, store(path, encodeKey(key), 0o600)
}

func (a authority) outdated(wanted request, path string) bool {
	chain, err := readChain(path)
	if err != nil {
		return false
	}
	found := chain[0]
	if time.Now().Add(renewDays * 24 * time.Hour).After(found.NotAfter) {
		return true
	}
	groups := slices.Sorted(slices.Values(wanted.groups))
	if found.Subject.CommonName != wanted.name || !slices.Equal(slices.Sorted(slices.Values(found.Subject.Organization)), groups) {
		return true
	}
	for _, san := range wanted.sans {
		if address := net.ParseIP(san); address != nil {
			if !slices.ContainsFunc(found.IPAddresses, address.Equal) {
				return true
			}
		} else if !slices.Contains(found.DNSNames, san) {
			return true
		}
	}
	authorities, err := readChain(a.certificateFile())
	return !wanted.stays && err == nil && !bytes.Equal(found.AuthorityKeyId, authorities[0].SubjectKeyId)
}

// ensureServiceKey makes the key that signs tokens of service accounts. When it is rotated, older ones follow it in the file, and only the first signs.
func ensureServiceKey(path, current string) error {
	if !exists(path) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return err
		}
		block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
		if err := store(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, _ := pem.Decode(content)
	if first == nil {
		return fmt.Errorf("data does not contain a valid RSA or ECDSA private key: %s", path)
	}
	return store(current, pem.EncodeToMemory(first), 0o600)
}

func pool(path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(content)
	return known, nil
}

// mutual is the setup of a client with a certificate.
func mutual(ca, certificate, key string) (*tls.Config, error) {
	known, err := pool(ca)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: known, Certificates: []tls.Certificate{own}}, nil
}
