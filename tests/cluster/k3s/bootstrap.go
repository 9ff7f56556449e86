package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// The files that all servers share, by their name in the datastore and their place in the folder of servers.
var sharedFiles = map[string]string{
	"ETCDServerCA":       "tls/etcd/server-ca.crt",
	"ETCDServerCAKey":    "tls/etcd/server-ca.key",
	"ETCDPeerCA":         "tls/etcd/peer-ca.crt",
	"ETCDPeerCAKey":      "tls/etcd/peer-ca.key",
	"ServerCA":           "tls/server-ca.crt",
	"ServerCAKey":        "tls/server-ca.key",
	"ClientCA":           "tls/client-ca.crt",
	"ClientCAKey":        "tls/client-ca.key",
	"ServiceKey":         "tls/service.key",
	"PasswdFile":         "cred/passwd",
	"RequestHeaderCA":    "tls/request-header-ca.crt",
	"RequestHeaderCAKey": "tls/request-header-ca.key",
	"IPSECKey":           "cred/ipsec.psk",
	"EncryptionConfig":   "cred/encryption-config.json",
	"EncryptionHash":     "cred/encryption-state.json",
}

type sharedFile struct {
	Timestamp time.Time
	Content   []byte
}

var errOtherToken = errors.New("bootstrap data already found and encrypted with different token")

func storageKey(password string) string {
	digest := sha256.Sum256([]byte(password))
	return "/bootstrap/" + hex.EncodeToString(digest[:])[:12]
}

func sealer(password, salt string) (cipher.AEAD, error) {
	key, err := pbkdf2.Key(sha1.New, password, []byte(salt), 4096, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func encrypt(password string, content []byte) ([]byte, error) {
	salt := random(8)
	sealing, err := sealer(password, salt)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, sealing.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return []byte(salt + ":" + base64.StdEncoding.EncodeToString(sealing.Seal(nonce, nonce, content, nil))), nil
}

func decrypt(password string, content []byte) ([]byte, error) {
	salt, encoded, found := strings.Cut(string(content), ":")
	if !found {
		return nil, errors.New("invalid cipher text, not : delimited")
	}
	sealing, err := sealer(password, salt)
	if err != nil {
		return nil, err
	}
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	return sealing.Open(nil, sealed[:sealing.NonceSize()], sealed[sealing.NonceSize():], nil)
}

// shared is the content of the files that all servers share.
func (c *cluster) shared() ([]byte, error) {
	files := map[string]sharedFile{}
	for name, place := range sharedFiles {
		content, err := os.ReadFile(c.path(place))
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		found, err := os.Stat(c.path(place))
		if err != nil {
			return nil, err
		}
		files[name] = sharedFile{found.ModTime(), content}
	}
	return json.Marshal(files)
}

// adopt writes shared files of the cluster to the disk. Files that are newer there and differ end the server, because it may be another cluster's.
func (c *cluster) adopt(content []byte) error {
	info("Reconciling bootstrap data between datastore and disk")
	files := map[string]sharedFile{}
	if err := json.Unmarshal(content, &files); err != nil {
		return err
	}
	var newer []string
	if exists(c.path("cred"), c.path("tls"), c.path("tls", "etcd")) {
		for name, file := range files {
			path := c.path(sharedFiles[name])
			found, err := os.ReadFile(path)
			if err != nil || string(found) == string(file.Content) {
				continue
			}
			changed, err := os.Stat(path)
			if err != nil {
				return err
			}
			if changed.ModTime().Unix()-file.Timestamp.Unix() < 3 || c.on("cluster-reset") {
				warn("Datastore newer than %s", path)
				continue
			}
			newer = append(newer, path)
		}
	}
	if len(newer) > 0 {
		fatal("%s newer than datastore and could cause a cluster outage. Remove the file(s) from disk and restart to be recreated from datastore.",
			strings.Join(newer, ", "))
	}
	for name, file := range files {
		path := c.path(sharedFiles[name])
		if found, err := os.ReadFile(path); err == nil && string(found) == string(file.Content) {
			continue
		}
		if err := store(path, file.Content, 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, file.Timestamp, file.Timestamp); err != nil {
			return err
		}
	}
	return nil
}

// password is that with which data of the datastore is encrypted, "" for a server that has none yet.
func (c *cluster) password() (string, error) {
	token := c.token
	if token == "" {
		content, err := os.ReadFile(c.path("token"))
		if errors.Is(err, os.ErrNotExist) {
			return c.passwords()["server"], nil
		} else if err != nil {
			return "", err
		}
		token = strings.TrimRight(string(content), "\n")
	}
	return normalized(token)
}

// fromDatastore adopts what a datastore has, if it has anything. Whether it had.
func (c *cluster) fromDatastore(ctx context.Context, etcd *etcdClient) (bool, error) {
	password, err := c.password()
	if err != nil {
		return false, err
	}
	found, err := etcd.below(ctx, "/bootstrap")
	if err != nil || len(found) == 0 {
		return false, err
	}
	for _, one := range found {
		if string(one.Key) != storageKey(password) || password == "" {
			continue
		}
		content, err := decrypt(password, one.Value)
		if err != nil {
			return false, err
		}
		return true, c.adopt(content)
	}
	return false, errOtherToken
}

// save puts the shared files into the datastore.
func (c *cluster) save(ctx context.Context) error {
	password := c.passwords()["server"]
	content, err := c.shared()
	if err != nil {
		return err
	}
	sealed, err := encrypt(password, content)
	if err != nil {
		return err
	}
	found, err := c.etcd.below(ctx, "/bootstrap")
	if err != nil {
		return err
	}
	for _, one := range found {
		if string(one.Key) != storageKey(password) {
			return errOtherToken
		}
	}
	return c.etcd.put(ctx, storageKey(password), sealed)
}

// fromServer adopts what another server of the cluster has.
func (c *cluster) fromServer() error {
	content, err := c.join.get("/v1-k3s/server-bootstrap")
	if err != nil {
		return err
	}
	return c.adopt(content)
}

// bootstrap finds out whether there is a cluster already, and takes from it what its servers share.
func (c *cluster) bootstrap(ctx context.Context) error {
	initialized := exists(c.path("db", "etcd", "member", "wal"))
	external := c.text("datastore-endpoint")
	c.managed = initialized || external == "" && (c.on("cluster-init") || c.on("cluster-reset") || c.token != "" && c.text("server") != "")
	if !c.managed {
		return c.bootstrapUnmanaged(ctx, external)
	}
	if c.on("cluster-reset") {
		return nil
	}
	if initialized {
		info("Managed etcd cluster bootstrap already complete and initialized")
		return c.reconcile(ctx)
	}
	if c.text("server") == "" {
		info("Managed etcd cluster initializing")
		return nil
	}
	if c.token == "" {
		return errors.New("failed to check if bootstrap data has been initialized: K3S_TOKEN is required to join a cluster")
	}
	joined, err := validated(c.text("server"), c.token, "server")
	if err != nil {
		return fmt.Errorf("failed to check if bootstrap data has been initialized: failed to validate token: %w", err)
	}
	info("Managed etcd cluster not yet initialized")
	c.join = joined
	if err := c.compare(); err != nil {
		return wrap(err, "failed to validate server configuration")
	}
	return c.fromServer()
}

// reconcile compares the files of a server that has a member already with those of the cluster: by another server if that answers, or else by its own
// data, in an etcd for this step only, because the cluster may have no quorum.
func (c *cluster) reconcile(ctx context.Context) error {
	if c.text("server") != "" && c.token != "" {
		if joined, err := validated(c.text("server"), c.token, "server"); err == nil {
			c.join = joined
			if err := c.fromServer(); err == nil {
				info("Successfully reconciled with datastore")
				return nil
			} else {
				warn("Unable to reconcile with remote datastore: %v", err)
			}
		}
	}
	info("Starting temporary etcd to reconcile with datastore")
	return wrap(c.withCopy(ctx, c.path("db", "etcd"), func(etcd *etcdClient) error {
		found, err := c.fromDatastore(ctx, etcd)
		if err == nil && !found {
			err = errors.New("no bootstrap data found in datastore - check server token value and verify datastore integrity")
		}
		return err
	}), "failed to reconcile with local datastore")
}
