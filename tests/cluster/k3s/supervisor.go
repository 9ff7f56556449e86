package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	errNotReady  = errors.New("apiserver not ready")
	errCoreReady = errors.New("runtime core not ready")
)

// identified is who has sent a request.
type identified struct {
	user   string
	groups []string
}

func (i identified) node() string {
	name, found := strings.CutPrefix(i.user, "system:node:")
	if !found || !slices.Contains(i.groups, "system:nodes") {
		return ""
	}
	return name
}

// send answers with a Status, and logs it as K3s does.
func sendError(writer http.ResponseWriter, asked *http.Request, err error, code int) {
	if !errors.Is(err, errNotReady) {
		problem("Sending %s %d response to %s: %v", asked.Proto, code, asked.RemoteAddr, err)
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	reason := map[int]string{400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}[code]
	status := object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": err.Error(), "reason": reason, "code": code}
	_ = json.NewEncoder(writer).Encode(status)
}

// sendHidden tells a number instead of the cause, which only the log has.
func sendHidden(writer http.ResponseWriter, asked *http.Request, err error, component string, code int) {
	number, _ := rand.Int(rand.Reader, big.NewInt(99999))
	problem("%s error ID %05d: %v", component, number, err)
	sendError(writer, asked, fmt.Errorf("%s error ID %05d", component, number), code)
}

func (c *cluster) identify(asked *http.Request) (*identified, error) {
	if name, password, given := asked.BasicAuth(); given {
		if known := c.passwords()[name]; known == "" || known != password {
			return nil, errors.New("invalid username/password combination")
		}
		return &identified{name, []string{map[string]string{"server": "k3s:server", "node": "k3s:agent"}[name]}}, nil
	}
	if asked.TLS != nil && len(asked.TLS.PeerCertificates) > 0 {
		known, err := pool(c.ca("client-ca").certificateFile())
		if err != nil {
			return nil, err
		}
		// While authorities are replaced, a client may have a certificate of a newer one than this server, which the old one has signed.
		others := x509.NewCertPool()
		for _, one := range asked.TLS.PeerCertificates[1:] {
			others.AddCert(one)
		}
		options := x509.VerifyOptions{Roots: known, Intermediates: others, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := asked.TLS.PeerCertificates[0].Verify(options); err != nil {
			return nil, err
		}
		subject := asked.TLS.PeerCertificates[0].Subject
		return &identified{subject.CommonName, subject.Organization}, nil
	}
	if token, found := strings.CutPrefix(asked.Header.Get("Authorization"), "Bearer "); found && c.apiReady() {
		return c.review(asked.Context(), token)
	}
	return nil, nil
}

// review asks the API server for the owner of a token, such as one of `k3s token create`.
func (c *cluster) review(ctx context.Context, token string) (*identified, error) {
	body := object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": object{"token": token}}
	answer, err := c.api.do(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", jsonType, body)
	if err != nil {
		return nil, err
	}
	if known, _ := at(answer, "status", "authenticated").(bool); !known {
		return nil, errors.New("invalid bearer token")
	}
	found := &identified{user: field(answer, "status", "user", "username")}
	groups, _ := at(answer, "status", "user", "groups").([]any)
	for _, group := range groups {
		found.groups = append(found.groups, fmt.Sprint(group))
	}
	return found, nil
}

type handler func(writer http.ResponseWriter, asked *http.Request, who *identified)

// allowed lets requests of some groups through.
func (c *cluster) allowed(next handler, groups ...string) http.HandlerFunc {
	return func(writer http.ResponseWriter, asked *http.Request) {
		who, err := c.identify(asked)
		if err != nil {
			problem("Failed to authenticate request from %s: %v", asked.RemoteAddr, err)
			sendError(writer, asked, errors.New("not authorized"), http.StatusUnauthorized)
			return
		}
		if who == nil || !slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(who.groups, group) }) {
			sendError(writer, asked, errors.New("forbidden"), http.StatusForbidden)
			return
		}
		next(writer, asked, who)
	}
}

func (c *cluster) apiReady() bool {
	select {
	case <-c.ready.api:
		return true
	default:
		return false
	}
}

// routes of the supervisor, which shares the port of the API server: what is not here is for that one.
func (c *cluster) routes() http.Handler {
	agents := []string{"k3s:agent", "system:nodes", "system:bootstrappers"}
	routes := http.NewServeMux()
	routes.HandleFunc("/ping", func(writer http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(writer, "pong") })
	routes.HandleFunc("/cacerts", func(writer http.ResponseWriter, asked *http.Request) {
		writer.Header().Set("Content-Type", "text/plain")
		http.ServeFile(writer, asked, c.ca("server-ca").certificateFile())
	})
	for path, next := range map[string]handler{
		"serving-kubelet.crt":       c.servingKubelet,
		"client-kubelet.crt":        c.clientKubelet,
		"client-kube-proxy.crt":     c.clientOf("system:kube-proxy", "client-kube-proxy.key"),
		"client-k3s-controller.crt": c.clientOf("system:k3s-controller", "client-k3s-controller.key"),
		"client-ca.crt":             c.file("tls/client-ca.crt"),
		"server-ca.crt":             c.file("tls/server-ca.crt"),
		"apiservers":                c.apiServers,
		"config":                    c.agentConfig,
		"readyz":                    c.readyz,
	} {
		routes.HandleFunc("/v1-k3s/"+path, c.allowed(next, agents...))
	}
	for path, next := range map[string]handler{
		"/v1-k3s/server-bootstrap": c.serverBootstrap,
		"/v1-k3s/token":            c.rotateToken,
		"/v1-k3s/encrypt/status":   c.encryptStatus,
		"/v1-k3s/encrypt/config":   c.encryptChange,
		"/v1-k3s/cert/cacerts":     c.replaceAuthorities,
		"/db/info":                 c.etcdInfo,
		"/db/snapshot":             c.handleSnapshots,
	} {
		routes.HandleFunc(path, c.allowed(next, "k3s:server"))
	}
	routes.Handle("/", c.apiServer())
	return routes
}

// apiServer hands requests over to the API server, with the name of a client that has shown a certificate here.
func (c *cluster) apiServer() http.Handler {
	target, err := url.Parse(c.loopback())
	failed(err)
	var proxies [2]*httputil.ReverseProxy
	for number := range proxies {
		proxies[number] = httputil.NewSingleHostReverseProxy(target)
		proxies[number].FlushInterval = -1
		proxies[number].ErrorLog = log.New(io.Discard, "", 0)
		proxies[number].ErrorHandler = func(writer http.ResponseWriter, asked *http.Request, _ error) {
			sendError(writer, asked, errNotReady, http.StatusServiceUnavailable)
		}
	}
	plain, err := pool(c.ca("server-ca").certificateFile())
	failed(err)
	header, err := mutual(c.ca("server-ca").certificateFile(), c.path("tls", "client-auth-proxy.crt"), c.path("tls", "client-auth-proxy.key"))
	failed(err)
	// Connections that are upgraded, as for the log of a container, need version 1 of HTTP.
	none := map[string]func(string, *tls.Conn) http.RoundTripper{}
	proxies[0].Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: plain}, TLSNextProto: none, MaxIdleConnsPerHost: 100}
	proxies[1].Transport = &http.Transport{TLSClientConfig: header, TLSNextProto: none, MaxIdleConnsPerHost: 100}
	return http.HandlerFunc(func(writer http.ResponseWriter, asked *http.Request) {
		for name := range asked.Header {
			if strings.HasPrefix(name, "X-Remote-") {
				asked.Header.Del(name)
			}
		}
		who, err := c.identify(&http.Request{TLS: asked.TLS})
		if err != nil {
			sendError(writer, asked, errors.New("Unauthorized"), http.StatusUnauthorized)
			return
		}
		if who == nil {
			proxies[0].ServeHTTP(writer, asked)
			return
		}
		asked.Header.Set("X-Remote-User", who.user)
		for _, group := range append(who.groups, "system:authenticated") {
			asked.Header.Add("X-Remote-Group", group)
		}
		proxies[1].ServeHTTP(writer, asked)
	})
}

// apiServerAddress is that of the API server, which shares the port with the supervisor.
const apiServerAddress = "127.0.0.2"

var sharing = net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
	const reusePort = 15
	var failure error
	err := connection.Control(func(descriptor uintptr) {
		failure = syscall.SetsockoptInt(int(descriptor), syscall.SOL_SOCKET, reusePort, 1)
	})
	return errors.Join(err, failure)
}}

// others is a listener without the address of the API server, connections to which arrive here as long as that does not listen.
type others struct{ net.Listener }

func (o others) Accept() (net.Conn, error) {
	for {
		connection, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if host, _, _ := net.SplitHostPort(connection.LocalAddr().String()); host != apiServerAddress {
			return connection, nil
		}
		connection.Close()
	}
}

// forwardLoopback makes the API server answer where it listens in K3s.
func (c *cluster) forwardLoopback() error {
	listener, err := net.Listen("tcp", strings.TrimPrefix(c.loopback(), "https://"))
	if err != nil {
		return err
	}
	target := net.JoinHostPort(apiServerAddress, c.text("https-listen-port"))
	go accept(listener, func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer server.Close()
		join(client, server)
	})
	return nil
}

// listen serves the port of servers, with a certificate for all names of the server.
func (c *cluster) listen() error {
	ca := c.ca("server-ca")
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + c.text("cluster-domain")}
	wanted := request{name: "k3s", groups: []string{"k3s"}, server: true, sans: append(names, c.sans()...), stays: true}
	// K3s keeps certificate and key of the listener in one file, and makes them anew if the other file exists.
	cache, again := c.path("tls", "dynamic-cert.json"), c.path("tls", "dynamic-cert-regenerate")
	certificate, key := cache+".crt", cache+".key"
	if _, err := ca.ensure(exists(again) || !exists(cache), wanted, certificate, key); err != nil {
		return err
	}
	_ = os.Remove(again)
	if err := store(cache, []byte("{}\n"), 0o600); err != nil {
		return err
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := sharing.Listen(context.Background(), "tcp", net.JoinHostPort(c.text("bind-address"), c.text("https-listen-port")))
	if err != nil {
		return err
	}
	if err := c.forwardLoopback(); err != nil {
		return err
	}
	server := &http.Server{
		Handler:           c.routes(),
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: 30 * time.Second,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
	}
	go func() { fatal("server stopped: %v", server.ServeTLS(others{listener}, "", "")) }()
	return nil
}
