package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

const tokenPrefix = "K10"

var bootstrapToken = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// access is what a token says, and after validation the server that it is for. bearer: a token of kubeadm's kind, instead of user and password.
type access struct {
	caHash, user, password, bearer string
	base                           string
	ca                             []byte
	certificates                   []tls.Certificate
}

func parseToken(token string) (*access, error) {
	if token == "" {
		return nil, errors.New("token must not be empty")
	}
	if !strings.HasPrefix(token, tokenPrefix) {
		if bootstrapToken.MatchString(token) {
			token = tokenPrefix + "::" + token
		} else {
			token = tokenPrefix + ":::" + token
		}
	}
	parsed := &access{}
	credentials := token[len(tokenPrefix):]
	if hash, rest, found := strings.Cut(credentials, "::"); found {
		if hash != "" && len(hash) != sha256.Size*2 {
			return nil, errors.New("invalid token CA hash length")
		}
		parsed.caHash, credentials = hash, rest
	}
	if bootstrapToken.MatchString(credentials) {
		parsed.bearer = credentials
		return parsed, nil
	}
	user, password, found := strings.Cut(credentials, ":")
	if !found || password == "" {
		return nil, errors.New("invalid token format")
	}
	parsed.user, parsed.password = user, password
	return parsed, nil
}

// normalized is the password alone, with which data of the datastore is encrypted.
func normalized(token string) (string, error) {
	parsed, err := parseToken(token)
	if err != nil || parsed.bearer != "" {
		return "", errors.New("failed to normalize token; must be in format K10<CA-HASH>::<USERNAME>:<PASSWORD> or <PASSWORD>")
	}
	return parsed.password, nil
}

func random(size int) string {
	content := make([]byte, size)
	_, err := rand.Read(content)
	failed(err)
	return hex.EncodeToString(content)
}

// caHash is of the bytes for one certificate, or what is none, and of the root of the first one for a chain, so that the others can be renewed.
func caHash(bundle []byte) string {
	content := bundle
	if chain, err := parseChain(bundle); err == nil && len(chain) > 1 {
		roots, others := x509.NewCertPool(), x509.NewCertPool()
		for _, one := range chain[1:] {
			if isRoot(one) {
				roots.AddCert(one)
			} else {
				others.AddCert(one)
			}
		}
		if verified, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others}); err == nil {
			content = verified[0][len(verified[0])-1].Raw
		}
	}
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

func formatToken(credentials, caFile string) (string, error) {
	content, err := os.ReadFile(caFile)
	if err != nil {
		return "", err
	}
	return tokenPrefix + caHash(content) + "::" + credentials, nil
}

// validated parses a token and checks it against the CA of the server.
func validated(server, token, user string, certificates ...tls.Certificate) (*access, error) {
	parsed, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	if parsed.bearer == "" {
		parsed.user = user
	}
	parsed.certificates = certificates
	address, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("Invalid server url, failed to parse: %s: %w", server, err)
	}
	if address.Scheme != "https" {
		return nil, errors.New("only https:// URLs are supported, invalid scheme: " + server)
	}
	parsed.base = strings.TrimRight(address.String(), "/")
	insecure := &access{base: parsed.base}
	if parsed.ca, err = insecure.get("/cacerts"); err != nil {
		return nil, wrap(err, "failed to get CA certs")
	}
	if _, err = (&access{base: parsed.base, ca: parsed.ca}).get("/cacerts"); err != nil {
		return nil, wrap(err, "CA cert validation failed")
	}
	if parsed.caHash == "" {
		warn("Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash. " +
			"Use the full token from the server's node-token file to enable Cluster CA validation.")
	} else if found := caHash(parsed.ca); found != parsed.caHash {
		return nil, fmt.Errorf("token CA hash does not match the Cluster CA certificate hash: %s != %s", parsed.caHash, found)
	}
	return parsed, nil
}

func (a *access) client() *http.Client {
	setup := &tls.Config{Certificates: a.certificates}
	if a.ca == nil {
		setup.InsecureSkipVerify = true
	} else {
		setup.RootCAs = x509.NewCertPool()
		setup.RootCAs.AppendCertsFromPEM(a.ca)
	}
	// As K3s has no idle connections either, it notices a server that has been replaced.
	transport := &http.Transport{TLSClientConfig: setup, DisableKeepAlives: true}
	return &http.Client{Timeout: 10 * time.Second, Transport: transport}
}

type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

func (a *access) send(method, path string, body []byte, headers map[string]string, patience time.Duration) ([]byte, error) {
	request, err := http.NewRequest(method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if a.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+a.bearer)
	} else if a.user != "" {
		request.SetBasicAuth(a.user, a.password)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	client := a.client()
	if patience > 0 {
		client.Timeout = patience
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		message := fmt.Sprintf("%s: %s", a.base+path, response.Status)
		if method == http.MethodPut {
			message += " " + string(content)
		}
		return nil, &statusError{response.StatusCode, message}
	}
	return content, err
}

func (a *access) get(path string) ([]byte, error) { return a.send(http.MethodGet, path, nil, nil, 0) }
