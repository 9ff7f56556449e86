package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

type object = map[string]any

// apiClient asks the API server for objects as they are.
type apiClient struct {
	base   string
	client *http.Client
}

func newAPIClient(base, ca, certificate, key string) (*apiClient, error) {
	setup, err := mutual(ca, certificate, key)
	if err != nil {
		return nil, err
	}
	return &apiClient{base, &http.Client{Transport: &http.Transport{TLSClientConfig: setup}}}, nil
}

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
)

func (a *apiClient) open(ctx context.Context, method, path, kind string, body any) (*http.Response, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode > 299 {
		defer response.Body.Close()
		found, _ := io.ReadAll(response.Body)
		var status struct{ Message string }
		if json.Unmarshal(found, &status) != nil || status.Message == "" {
			status.Message = fmt.Sprintf("%s: %s", response.Status, found)
		}
		return nil, &statusError{response.StatusCode, status.Message}
	}
	return response, nil
}

func (a *apiClient) do(ctx context.Context, method, path, kind string, body any) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	response, err := a.open(ctx, method, path, kind, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	found := object{}
	if err := json.Unmarshal(content, &found); err != nil {
		return object{"text": string(content)}, nil
	}
	return found, nil
}

func (a *apiClient) get(ctx context.Context, path string) (object, error) {
	return a.do(ctx, http.MethodGet, path, jsonType, nil)
}

func (a *apiClient) patch(ctx context.Context, path string, change object) error {
	_, err := a.do(ctx, http.MethodPatch, path, mergeType, change)
	return err
}

func (a *apiClient) apply(ctx context.Context, path string, wanted object) error {
	_, err := a.do(ctx, http.MethodPatch, path+"?fieldManager=k3s&force=true", applyType, wanted)
	return err
}

func refused(err error, code int) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == code
}

// watch hands over all objects of a collection, and then each that changes or is deleted, until the context ends.
func (a *apiClient) watch(ctx context.Context, path string, take func(deleted bool, one object)) {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		listed, err := a.get(ctx, path)
		if err != nil {
			continue
		}
		for _, one := range items(listed) {
			take(false, one)
		}
		from := field(listed, "metadata", "resourceVersion")
		response, err := a.open(ctx, http.MethodGet, path+separator+"watch=1&resourceVersion="+from, jsonType, nil)
		if err != nil {
			continue
		}
		for events := json.NewDecoder(response.Body); ; {
			var event struct {
				Type   string
				Object object
			}
			if events.Decode(&event) != nil || event.Type == "ERROR" {
				break
			}
			if event.Type != "BOOKMARK" {
				take(event.Type == "DELETED", event.Object)
			}
		}
		response.Body.Close()
	}
}

func items(listed object) []object {
	var found []object
	all, _ := listed["items"].([]any)
	for _, one := range all {
		if known, ok := one.(object); ok {
			found = append(found, known)
		}
	}
	return found
}

func at(one object, path ...string) any {
	var value any = one
	for _, name := range path {
		inner, ok := value.(object)
		if !ok {
			return nil
		}
		value = inner[name]
	}
	return value
}

func field(one object, path ...string) string {
	found, _ := at(one, path...).(string)
	return found
}

func kubeconfig(server string, cluster, user object, name string) object {
	return object{
		"apiVersion": "v1", "kind": "Config", "preferences": object{}, "current-context": name,
		"clusters": []object{{"name": name, "cluster": merged(cluster, object{"server": server})}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
		"users":    []object{{"name": name, "user": user}},
	}
}

func merged(one, other object) object {
	all := object{}
	for _, part := range []object{one, other} {
		for key, value := range part {
			all[key] = value
		}
	}
	return all
}

// writeKubeconfig names the files of the certificate, which may change.
func writeKubeconfig(path, server, ca, certificate, key string) error {
	content, err := yaml.Marshal(kubeconfig(server, object{"certificate-authority": ca}, object{"client-certificate": certificate, "client-key": key}, "local"))
	if err != nil {
		return err
	}
	return store(path, content, 0o600)
}

// embeddedKubeconfig has everything in one file.
func embeddedKubeconfig(server, ca, certificate, key string) ([]byte, error) {
	encoded := map[string]string{}
	for name, path := range map[string]string{"ca": ca, "certificate": certificate, "key": key} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		encoded[name] = base64.StdEncoding.EncodeToString(content)
	}
	user := object{"client-certificate-data": encoded["certificate"], "client-key-data": encoded["key"]}
	return yaml.Marshal(kubeconfig(server, object{"certificate-authority-data": encoded["ca"]}, user, "default"))
}
