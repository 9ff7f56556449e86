package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// apiError is an unsuccessful response of the server.
type apiError struct {
	code int
	text string
}

func (err apiError) Error() string { return err.text }

func notFound(err error) bool {
	answer, is := err.(apiError)
	return is && answer.code == http.StatusNotFound
}

// api is a client of the API server with the pod's service account.
type api struct {
	client *http.Client
	base   string
}

func newAPI() (*api, error) {
	authority, err := os.ReadFile(serviceAccount + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	base := fmt.Sprintf("https://%s:%s", os.Getenv("KUBERNETES_SERVICE_HOST"), setting("KUBERNETES_SERVICE_PORT", "443"))
	return &api{&http.Client{Transport: transport, Timeout: 30 * time.Second}, base}, nil
}

// call sends body and decodes the response into answer, unless they are nil. A patch is a merge patch.
func (server *api) call(method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, server.base+path, content)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(serviceAccount + "token")
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := server.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return apiError{response.StatusCode, fmt.Sprintf("%s %s: %s", method, path, text)}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// The fields of metadata and similar types that the stand-ins read.
type object struct {
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		OwnerReferences []owner           `json:"ownerReferences"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

type owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller *bool  `json:"controller,omitempty"`
}

type list struct {
	Items []object `json:"items"`
}
