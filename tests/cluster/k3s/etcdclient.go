package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// etcdClient speaks to etcd's gateway, whose numbers are strings and whose keys and values are in base 64.
type etcdClient struct {
	endpoint string
	client   *http.Client
}

type member struct {
	ID         string   `json:"ID"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	IsLearner  bool     `json:"isLearner"`
}

type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader    string   `json:"leader"`
	IsLearner bool     `json:"isLearner"`
	Errors    []string `json:"errors"`
}

type keyValue struct {
	Key, Value []byte
	Revision   string `json:"mod_revision"`
}

func newEtcdClient(endpoint string, setup *tls.Config) *etcdClient {
	return &etcdClient{strings.TrimRight(endpoint, "/"), &http.Client{Transport: &http.Transport{TLSClientConfig: setup}}}
}

func (e *etcdClient) call(ctx context.Context, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint+"/v3/"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	found, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var refused struct{ Message, Error string }
		if json.Unmarshal(found, &refused) == nil && refused.Message != "" {
			return errors.New(refused.Message)
		}
		return fmt.Errorf("%s: %s", response.Status, found)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(found, answer)
}

func (e *etcdClient) status(ctx context.Context) (*etcdStatus, error) {
	found := &etcdStatus{}
	return found, e.call(ctx, "maintenance/status", map[string]string{}, found)
}

func (e *etcdClient) members(ctx context.Context) ([]member, error) {
	var found struct{ Members []member }
	return found.Members, e.call(ctx, "cluster/member/list", map[string]bool{"linearizable": true}, &found)
}

func (e *etcdClient) addLearner(ctx context.Context, peer string) error {
	return e.call(ctx, "cluster/member/add", map[string]any{"peerURLs": []string{peer}, "isLearner": true}, nil)
}

func (e *etcdClient) promote(ctx context.Context, id string) error {
	return e.call(ctx, "cluster/member/promote", map[string]string{"ID": id}, nil)
}

func (e *etcdClient) remove(ctx context.Context, id string) error {
	return e.call(ctx, "cluster/member/remove", map[string]string{"ID": id}, nil)
}

func (e *etcdClient) updatePeer(ctx context.Context, id, peer string) error {
	return e.call(ctx, "cluster/member/update", map[string]any{"ID": id, "peerURLs": []string{peer}}, nil)
}

// below returns the keys with a prefix.
func (e *etcdClient) below(ctx context.Context, prefix string) ([]keyValue, error) {
	var found struct{ Kvs []keyValue }
	asked := map[string][]byte{"key": []byte(prefix), "range_end": endOf(prefix)}
	return found.Kvs, e.call(ctx, "kv/range", asked, &found)
}

// copied hands over the keys with a prefix, not all at once because answers have a limit of size.
func (e *etcdClient) copied(ctx context.Context, prefix string, take func(keyValue) error) error {
	from := []byte(prefix)
	for {
		var found struct {
			Kvs  []keyValue
			More bool
		}
		asked := map[string]any{"key": from, "range_end": endOf(prefix), "limit": "100"}
		if err := e.call(ctx, "kv/range", asked, &found); err != nil {
			return err
		}
		for _, one := range found.Kvs {
			if err := take(one); err != nil {
				return err
			}
			from = append(append([]byte{}, one.Key...), 0)
		}
		if !found.More {
			return nil
		}
	}
}

func endOf(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

func (e *etcdClient) put(ctx context.Context, key string, value []byte) error {
	return e.call(ctx, "kv/put", map[string][]byte{"key": []byte(key), "value": value}, nil)
}

func (e *etcdClient) delete(ctx context.Context, key string) error {
	return e.call(ctx, "kv/deleterange", map[string][]byte{"key": []byte(key)}, nil)
}

// snapshot writes the whole database to a file.
func (e *etcdClient) snapshot(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint+"/v3/maintenance/snapshot", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for pieces := json.NewDecoder(response.Body); ; {
		var piece struct {
			Result struct{ Blob string }
			Error  *struct{ Message string }
		}
		if err := pieces.Decode(&piece); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if piece.Error != nil {
			return errors.New(piece.Error.Message)
		}
		content, err := base64.StdEncoding.DecodeString(piece.Result.Blob)
		if err != nil {
			return err
		}
		if _, err := file.Write(content); err != nil {
			return err
		}
	}
	return os.Rename(path+".part", path)
}
