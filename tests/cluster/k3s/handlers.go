package main

import (
	"context"
	"crypto"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const nodeFolder = "/etc/rancher/node"

// nodeNames are nodes whose password is checked later.
type nodeNames struct {
	lock  sync.Mutex
	known map[string]bool
}

// signed sends a certificate for the key of a request for one, or with a key that all requests without one share.
func (c *cluster) signed(writer http.ResponseWriter, asked *http.Request, ca authority, keyFile string, wanted request) {
	var public crypto.PublicKey
	var key []byte
	if content, err := io.ReadAll(asked.Body); asked.Method == http.MethodPost && err == nil {
		if found, err := x509.ParseCertificateRequest(content); err == nil {
			public = found.PublicKey
		}
	}
	if public == nil {
		shared, err := readKey(c.path("tls", keyFile))
		if err == nil {
			key, err = os.ReadFile(c.path("tls", keyFile))
		}
		if err != nil {
			sendError(writer, asked, err, http.StatusInternalServerError)
			return
		}
		public = shared.Public()
	}
	content, err := ca.sign(wanted, public)
	if err != nil {
		sendError(writer, asked, err, http.StatusInternalServerError)
		return
	}
	_, _ = writer.Write(append(content, key...))
}

func (c *cluster) servingKubelet(writer http.ResponseWriter, asked *http.Request, who *identified) {
	name, ok := c.nodeOf(writer, asked, who)
	if !ok {
		return
	}
	sans := []string{name, "localhost", "127.0.0.1"}
	for _, address := range strings.Split(asked.Header.Get("k3s-Node-IP"), ",") {
		if address != "" && net.ParseIP(address) == nil {
			sendError(writer, asked, fmt.Errorf("invalid node IP address %s", address), http.StatusInternalServerError)
			return
		}
		if address != "" {
			sans = append(sans, address)
		}
	}
	c.signed(writer, asked, c.ca("server-ca"), "serving-kubelet.key", request{name: name, server: true, sans: sans})
}

func (c *cluster) clientKubelet(writer http.ResponseWriter, asked *http.Request, who *identified) {
	if name, ok := c.nodeOf(writer, asked, who); ok {
		wanted := request{name: "system:node:" + name, groups: []string{"system:nodes"}, client: true}
		c.signed(writer, asked, c.ca("client-ca"), "client-kubelet.key", wanted)
	}
}

func (c *cluster) clientOf(user, keyFile string) handler {
	return func(writer http.ResponseWriter, asked *http.Request, _ *identified) {
		c.signed(writer, asked, c.ca("client-ca"), keyFile, request{name: user, client: true})
	}
}

func (c *cluster) file(place string) handler {
	return func(writer http.ResponseWriter, asked *http.Request, _ *identified) {
		writer.Header().Set("Content-Type", "text/plain")
		http.ServeFile(writer, asked, c.path(place))
	}
}

func (c *cluster) agentConfig(writer http.ResponseWriter, _ *http.Request, _ *identified) {
	writer.Header().Set("Content-Type", "application/json")
	shared := agentSettings{c.critical(), c.port(), c.port(), c.on("disable-kube-proxy"), c.text("system-default-registry")}
	_ = json.NewEncoder(writer).Encode(shared)
}

func (c *cluster) readyz(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if !c.apiReady() {
		sendError(writer, asked, errCoreReady, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(writer, "ok")
}

// apiServers are the addresses that the Service of the API server has.
func (c *cluster) apiServers(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	addresses := []string{}
	if c.apiReady() {
		ctx, cancel := context.WithTimeout(asked.Context(), 5*time.Second)
		defer cancel()
		const path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name%3Dkubernetes"
		if found, err := c.api.get(ctx, path); err == nil {
			addresses = addressesOf(items(found))
		}
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(addresses)
}

func addressesOf(slices []object) []string {
	addresses := []string{}
	for _, slice := range slices {
		ports, _ := slice["ports"].([]any)
		endpoints, _ := slice["endpoints"].([]any)
		for _, endpoint := range endpoints {
			hosts, _ := at(endpoint.(object), "addresses").([]any)
			for _, host := range hosts {
				for _, port := range ports {
					addresses = append(addresses, net.JoinHostPort(fmt.Sprint(host), fmt.Sprint(at(port.(object), "port"))))
				}
			}
		}
	}
	return addresses
}

func (c *cluster) serverBootstrap(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if !c.managed {
		warn("Received HTTP bootstrap request from %s, but embedded etcd is not enabled.", asked.RemoteAddr)
		sendError(writer, asked, errors.New("etcd disabled"), http.StatusBadRequest)
		return
	}
	content, err := c.shared()
	if err != nil {
		sendError(writer, asked, err, http.StatusInternalServerError)
		return
	}
	_, _ = writer.Write(content)
}

func (c *cluster) etcdInfo(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if !c.managed {
		sendError(writer, asked, errNotReady, http.StatusServiceUnavailable)
		return
	}
	members, err := c.etcd.members(asked.Context())
	if err != nil {
		sendError(writer, asked, wrap(err, "failed to get etcd MemberList"), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(map[string][]member{"members": members})
}

// nodeOf checks that a request comes from the node that it names: each node has a password, whose digest is in a Secret.
func (c *cluster) nodeOf(writer http.ResponseWriter, asked *http.Request, who *identified) (string, bool) {
	name, code, err := c.checkNode(asked, who)
	if err != nil {
		sendError(writer, asked, err, code)
		return "", false
	}
	return name, true
}

func (c *cluster) checkNode(asked *http.Request, who *identified) (string, int, error) {
	name, password := strings.ToLower(asked.Header.Get("k3s-Node-Name")), asked.Header.Get("k3s-Node-Password")
	if name == "" {
		return "", http.StatusBadRequest, errors.New("node name not set")
	}
	if password == "" {
		return "", http.StatusBadRequest, errors.New("node password not set")
	}
	if who.node() != "" && who.node() != name {
		return "", http.StatusBadRequest, errors.New("header node name does not match auth node name")
	}
	if !c.apiReady() {
		if name != c.nodeName {
			return "", http.StatusServiceUnavailable, errCoreReady
		}
		return c.checkLocally(name, password)
	}
	if who.node() != "" {
		if _, err := c.api.get(asked.Context(), "/api/v1/nodes/"+name); err != nil {
			return "", http.StatusUnauthorized, wrap(err, "unable to verify node identity")
		}
	}
	if err := c.ensurePassword(asked.Context(), name, password); err != nil {
		return "", http.StatusForbidden, fmt.Errorf("unable to verify password for node %s: %w", name, err)
	}
	return name, http.StatusOK, nil
}

// checkLocally is for the server's own node while the API server does not answer. The Secret is made afterwards.
func (c *cluster) checkLocally(name, password string) (string, int, error) {
	content, err := os.ReadFile(filepath.Join(nodeFolder, "password"))
	if err != nil {
		return "", http.StatusInternalServerError, wrap(err, "unable to read node password file")
	}
	if strings.TrimSpace(string(content)) != password {
		return "", http.StatusForbidden, errors.New("unable to verify local node password")
	}
	c.names.lock.Lock()
	defer c.names.lock.Unlock()
	if c.names.known[name] {
		return name, http.StatusOK, nil
	}
	if c.names.known == nil {
		c.names.known = map[string]bool{}
	}
	c.names.known[name] = true
	info("Password verified locally for node %s", name)
	go func() {
		<-c.ready.api
		if err := c.ensurePassword(context.Background(), name, password); err != nil {
			problem("Deferred node password secret validation failed: unable to verify password for node %s: %v", name, err)
		}
	}()
	return name, http.StatusOK, nil
}

// ensurePassword compares a password with the digest in the node's Secret, or makes the Secret.
func (c *cluster) ensurePassword(ctx context.Context, node, password string) error {
	name := node + ".node-password.k3s"
	const path = "/api/v1/namespaces/kube-system/secrets"
	found, err := c.api.get(ctx, path+"/"+name)
	if err == nil {
		return matches(found, password)
	}
	if !refused(err, http.StatusNotFound) {
		return err
	}
	salt := random(8)
	secret := object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "immutable": true,
		"data": object{"hash": base64.StdEncoding.EncodeToString([]byte(salt + ":" + digest(salt, password)))},
	}
	_, err = c.api.do(ctx, http.MethodPost, path, jsonType, secret)
	if refused(err, http.StatusConflict) {
		return c.ensurePassword(ctx, node, password)
	}
	return err
}

func matches(secret object, password string) error {
	content, err := base64.StdEncoding.DecodeString(field(secret, "data", "hash"))
	if err != nil || len(content) == 0 {
		return errors.New("password hash not found in node secret")
	}
	salt, known, _ := strings.Cut(string(content), ":")
	if subtle.ConstantTimeCompare([]byte(known), []byte(digest(salt, password))) != 1 {
		return errors.New("hash does not match")
	}
	return nil
}

// digest is not K3s' scrypt, which is no part of Go's library.
func digest(salt, password string) string {
	derived, err := pbkdf2.Key(sha256.New, password, []byte(salt), 4096, 32)
	failed(err)
	return hex.EncodeToString(derived)
}
