// Copyright (c) 2026 hwaccel.gpu contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rotated are the shared files that can be replaced; what a request has of others is ignored.
var rotated = []string{
	"ETCDServerCA", "ETCDServerCAKey", "ETCDPeerCA", "ETCDPeerCAKey", "ServerCA", "ServerCAKey", "ClientCA", "ClientCAKey", "ServiceKey",
	"RequestHeaderCA", "RequestHeaderCAKey",
}

// rotateAuthorities sends the files of new authorities to the server.
func rotateAuthorities(s *settings) error {
	server, err := asServer(s)
	if err != nil {
		return err
	}
	files := map[string]sharedFile{}
	for name, place := range sharedFiles {
		if name == "PasswdFile" || name == "IPSECKey" {
			continue
		}
		path := filepath.Join(s.text("path"), place)
		content, err := os.ReadFile(path)
		if err != nil {
			warn("failed to read %s", path)
			continue
		}
		found, err := os.Stat(path)
		if err != nil {
			return err
		}
		files[name] = sharedFile{found.ModTime(), content}
	}
	body, err := json.Marshal(files)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/v1-k3s/cert/cacerts?force=%t", s.on("force"))
	if _, err := server.send(http.MethodPut, path, body, nil, time.Minute); err != nil {
		return wrap(err, "see server log for details")
	}
	fmt.Println("certificates saved to datastore")
	return nil
}

// replaceAuthorities puts new authorities into the datastore, from which each server takes them at its next start.
func (c *cluster) replaceAuthorities(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if asked.Method != http.MethodPut {
		sendError(writer, asked, errors.New("method not allowed"), http.StatusMethodNotAllowed)
		return
	}
	files := map[string]sharedFile{}
	err := json.NewDecoder(asked.Body).Decode(&files)
	if err == nil {
		err = c.saveAuthorities(asked.Context(), files, asked.URL.Query().Get("force") == "true")
	}
	if err != nil {
		sendHidden(writer, asked, err, "certificate", http.StatusInternalServerError)
		return
	}
	info("certificate: Cluster Certificate Authority data has been updated, k3s must be restarted.")
	writer.WriteHeader(http.StatusNoContent)
}

func (c *cluster) saveAuthorities(ctx context.Context, given map[string]sharedFile, force bool) error {
	content, err := c.shared()
	if err != nil {
		return err
	}
	before, after := map[string]sharedFile{}, map[string]sharedFile{}
	for _, files := range []map[string]sharedFile{before, after} {
		if err := json.Unmarshal(content, &files); err != nil {
			return err
		}
	}
	var replaced []string
	for _, name := range rotated {
		if file := given[name]; len(file.Content) > 0 {
			after[name] = file
			replaced = append(replaced, name)
		} else {
			info("Using current data for %s: %s", name, c.path(sharedFiles[name]))
		}
	}
	if err := validateAuthorities(before, after, replaced); err != nil {
		if !force {
			return wrap(err, "failed to validate new CA certificates and keys")
		}
		warn("Save of CA certificates and keys forced, ignoring validation errors: %v", err)
	}
	if content, err = json.Marshal(after); err != nil {
		return err
	}
	password := c.passwords()["server"]
	sealed, err := encrypt(password, content)
	if err != nil {
		return err
	}
	return c.etcd.put(ctx, storageKey(password), sealed)
}

// validateAuthorities refuses what would not be trusted by whoever trusts the files of before. replaced: names of those that are new.
func validateAuthorities(before, after map[string]sharedFile, replaced []string) error {
	var problems []error
	for _, name := range rotated {
		isNew := slices.Contains(replaced, name)
		if strings.HasSuffix(name, "CA") {
			if isNew {
				problems = append(problems, wrap(validateAuthority(before[name].Content, after[name].Content), name))
			}
			if isNew || slices.Contains(replaced, name+"Key") {
				_, err := tls.X509KeyPair(after[name].Content, after[name+"Key"].Content)
				problems = append(problems, wrap(wrap(err, "new CA cert and key cannot be loaded as X590KeyPair"), name+"Key"))
			}
		}
		if name == "ServiceKey" && isNew {
			problems = append(problems, wrap(validateServiceKey(before[name].Content, after[name].Content), name))
		}
	}
	return errors.Join(problems...)
}

// isRoot tells it by the keys, as a root may be signed by another one, too.
func isRoot(one *x509.Certificate) bool {
	return len(one.AuthorityKeyId) == 0 || bytes.Equal(one.AuthorityKeyId, one.SubjectKeyId)
}

func validateAuthority(before, after []byte) error {
	old, err := parseChain(before)
	if err != nil {
		return err
	}
	given, err := parseChain(after)
	if err != nil {
		return err
	}
	if len(given) == 1 {
		return errors.New("new CA bundle contains only a single certificate but should include root or intermediate CA certificates")
	}
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	for _, one := range old {
		if isRoot(one) {
			roots.AddCert(one)
		} else {
			others.AddCert(one)
		}
	}
	for _, one := range given[1:] {
		if len(one.AuthorityKeyId) > 0 {
			others.AddCert(one)
		}
	}
	_, err = given[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
	return wrap(err, "new CA cert cannot be verified using old CA chain")
}

// validateServiceKey refuses keys with which tokens that are signed now could not be verified.
func validateServiceKey(before, after []byte) error {
	old, err := publicKeys(before)
	if err != nil {
		return err
	}
	given, err := publicKeys(after)
	if err != nil {
		return err
	}
	for _, key := range given {
		if key.(interface{ Equal(crypto.PublicKey) bool }).Equal(old[0]) {
			return nil
		}
	}
	return errors.New("old ServiceAccount signing key not in new ServiceAccount key list")
}

func publicKeys(content []byte) ([]crypto.PublicKey, error) {
	var found []crypto.PublicKey
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if key, err := parseKey(block.Bytes); err == nil {
			found = append(found, key.Public())
		}
	}
	if len(found) == 0 {
		return nil, errors.New("data does not contain any valid RSA or ECDSA public keys")
	}
	return found, nil
}
