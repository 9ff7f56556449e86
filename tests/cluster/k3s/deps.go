package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// generate makes what the server needs and does not have: authorities, certificates, passwords, kubeconfigs.
func (c *cluster) generate() error {
	steps := []func() error{c.clientCertificates, c.serverCertificates, c.headerCertificates, c.etcdCertificates, c.serviceKeys, c.users, c.networkKey}
	if c.on("secrets-encryption") {
		steps = append(steps, c.encryptionConfig)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfigs by file in cred, and the certificates that they have, with user and groups.
var clientUsers = []struct{ kubeconfig, certificate, user, group string }{
	{"admin", "client-admin", "system:admin", "system:masters"},
	{"supervisor", "client-supervisor", "system:k3s-supervisor", "system:masters"},
	{"controller", "client-controller", "system:kube-controller-manager", ""},
	{"scheduler", "client-scheduler", "system:kube-scheduler", ""},
	{"api-server", "client-kube-apiserver", "system:apiserver", "system:masters"},
	{"", "client-kube-proxy", "system:kube-proxy", ""},
	{"", "client-k3s-controller", "system:k3s-controller", ""},
	{"cloud-controller", "client-k3s-cloud-controller", "k3s-cloud-controller-manager", ""},
}

func (c *cluster) clientCertificates() error {
	ca := c.ca("client-ca")
	again, err := ensureAuthority(ca, "k3s-client")
	if err != nil {
		return err
	}
	if err := singleCertificate(ca, c.path("tls", "client-ca.nochain.crt")); err != nil {
		return err
	}
	for _, one := range clientUsers {
		wanted := request{name: one.user, client: true}
		if one.group != "" {
			wanted.groups = []string{one.group}
		}
		certificate, key := c.path("tls", one.certificate+".crt"), c.path("tls", one.certificate+".key")
		made, err := ca.ensure(again, wanted, certificate, key)
		if err != nil {
			return err
		}
		if one.kubeconfig == "" || !made {
			continue
		}
		file := c.path("cred", one.kubeconfig+".kubeconfig")
		if err := writeKubeconfig(file, c.loopback(), c.path("tls", "server-ca.crt"), certificate, key); err != nil {
			return err
		}
	}
	_, err = ensureKey(c.path("tls", "client-kubelet.key"), again)
	return err
}

// singleCertificate is for programs that want no chain.
func singleCertificate(ca authority, path string) error {
	chain, err := readChain(ca.certificateFile())
	if err != nil {
		return err
	}
	return store(path, encodeCertificates(chain[0]), 0o644)
}

func (c *cluster) serverCertificates() error {
	ca := c.ca("server-ca")
	again, err := ensureAuthority(ca, "k3s-server")
	if err != nil {
		return err
	}
	if err := singleCertificate(ca, c.path("tls", "server-ca.nochain.crt")); err != nil {
		return err
	}
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + c.text("cluster-domain")}
	wanted := request{name: "kube-apiserver", server: true, sans: append(names, c.sans()...)}
	if _, err := ca.ensure(again, wanted, c.path("tls", "serving-kube-apiserver.crt"), c.path("tls", "serving-kube-apiserver.key")); err != nil {
		return err
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		local := request{name: component, server: true, sans: []string{"127.0.0.1", "::1", "localhost"}}
		folder := c.path("tls", component)
		if _, err := ca.ensure(again, local, filepath.Join(folder, component+".crt"), filepath.Join(folder, component+".key")); err != nil {
			return err
		}
	}
	_, err = ensureKey(c.path("tls", "serving-kubelet.key"), again)
	return err
}

func (c *cluster) headerCertificates() error {
	ca := c.ca("request-header-ca")
	again, err := ensureAuthority(ca, "k3s-request-header")
	if err != nil {
		return err
	}
	wanted := request{name: "system:auth-proxy", client: true}
	_, err = ca.ensure(again, wanted, c.path("tls", "client-auth-proxy.crt"), c.path("tls", "client-auth-proxy.key"))
	return err
}

func (c *cluster) etcdCertificates() error {
	servers, peers := c.ca("etcd/server-ca"), c.ca("etcd/peer-ca")
	file := func(name string) (string, string) {
		return c.path("tls", "etcd", name+".crt"), c.path("tls", "etcd", name+".key")
	}
	again, err := ensureAuthority(servers, "etcd-server")
	if err != nil {
		return err
	}
	certificate, key := file("client")
	if _, err := servers.ensure(again, request{name: "etcd-client", client: true}, certificate, key); err != nil {
		return err
	}
	sans := append([]string{"kine.sock"}, c.sans()...)
	certificate, key = file("server-client")
	if _, err := servers.ensure(again, request{name: "etcd-server", server: true, client: true, sans: sans}, certificate, key); err != nil {
		return err
	}
	if again, err = ensureAuthority(peers, "etcd-peer"); err != nil {
		return err
	}
	certificate, key = file("peer-server-client")
	_, err = peers.ensure(again, request{name: "etcd-peer", server: true, client: true, sans: sans}, certificate, key)
	return err
}

func (c *cluster) serviceKeys() error {
	return ensureServiceKey(c.path("tls", "service.key"), c.path("tls", "service.current.key"))
}

// users writes the passwords of servers and of agents.
func (c *cluster) users() error {
	passwords := c.passwords()
	server := c.token
	if server != "" {
		password, err := normalized(server)
		if err != nil {
			return err
		}
		server = password
	} else if server = passwords["server"]; server == "" {
		server = random(16)
	}
	agent := server
	if c.agentToken != "" {
		password, err := normalized(c.agentToken)
		if err != nil {
			return err
		}
		agent = password
	}
	return c.writePasswords(server, agent)
}

func (c *cluster) passwdFile() string { return c.path("cred", "passwd") }

// passwords by user.
func (c *cluster) passwords() map[string]string {
	content, err := os.ReadFile(c.passwdFile())
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(content), "\n") {
		if fields := strings.Split(line, ","); len(fields) >= 2 {
			found[fields[1]] = fields[0]
		}
	}
	return found
}

func (c *cluster) writePasswords(server, agent string) error {
	content := fmt.Sprintf("%s,node,node,k3s:agent\n%s,server,server,k3s:server\n", agent, server)
	if found, err := os.ReadFile(c.passwdFile()); err == nil && string(found) == content {
		return nil
	}
	return store(c.passwdFile(), []byte(content), 0o600)
}

func (c *cluster) networkKey() error {
	if exists(c.path("cred", "ipsec.psk")) {
		return nil
	}
	return store(c.path("cred", "ipsec.psk"), []byte(random(48)+"\n"), 0o600)
}

func (c *cluster) encryptionFile() string { return c.path("cred", "encryption-config.json") }

func (c *cluster) encryptionConfig() error {
	if exists(c.encryptionFile()) {
		return nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	first := encryptionKey{Name: "aescbckey", Secret: base64.StdEncoding.EncodeToString(key)}
	return c.writeEncryption([]encryptionKey{first}, true, "start")
}

type encryptionKey struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// writeEncryption writes the keys, the first of which encrypts if enabled, and the stage with the configuration's digest.
func (c *cluster) writeEncryption(keys []encryptionKey, enabled bool, stage string) error {
	providers := []any{map[string]any{"aescbc": map[string]any{"keys": keys}}, map[string]any{"identity": map[string]any{}}}
	if !enabled {
		providers[0], providers[1] = providers[1], providers[0]
	}
	resources := []any{map[string]any{"resources": []string{"secrets"}, "providers": providers}}
	content, err := json.Marshal(map[string]any{"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1", "resources": resources})
	if err != nil {
		return err
	}
	// The API server reads the file whenever it changes, and must never see half of it.
	if err := store(c.encryptionFile()+".new", content, 0o600); err != nil {
		return err
	}
	if err := os.Rename(c.encryptionFile()+".new", c.encryptionFile()); err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	return store(c.path("cred", "encryption-state.json"), []byte(stage+"-"+hex.EncodeToString(digest[:])), 0o600)
}

// writeTokens writes the tokens with the digest of the CA, under the names that K3s has for them.
func (c *cluster) writeTokens() error {
	passwords := c.passwords()
	ca := c.ca("server-ca").certificateFile()
	full, err := formatToken("server:"+passwords["server"], ca)
	if err != nil {
		return err
	}
	if err := store(c.path("token"), []byte(full+"\n"), 0o600); err != nil {
		return err
	}
	info("Server node token is available at %s", c.path("token"))
	info("To join server node to cluster: k3s server -s https://%s:%d -t ${SERVER_NODE_TOKEN}", c.address, c.port())
	if err := relink(c.path("token"), c.path("node-token")); err != nil {
		return err
	}
	if c.agentToken == "" {
		err = relink(c.path("token"), c.path("agent-token"))
	} else if full, err = formatToken("node:"+passwords["node"], ca); err == nil {
		_ = os.Remove(c.path("agent-token"))
		err = store(c.path("agent-token"), []byte(full+"\n"), 0o600)
	}
	info("Agent node token is available at %s", c.path("agent-token"))
	info("To join agent node to cluster: k3s agent -s https://%s:%d -t ${AGENT_NODE_TOKEN}", c.address, c.port())
	return err
}

func relink(target, path string) error {
	if found, err := os.Readlink(path); err == nil && found == target {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}
