package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	encryptOptions = `
data-dir,d text =/var/lib/rancher/k3s
token,t text K3S_TOKEN
server,s text K3S_URL =https://127.0.0.1:6443
output,o text
force,f flag
skip flag
`
	hashAnnotation  = "k3s.io/encryption-config-hash"
	stageStart      = "start"
	stagePrepare    = "prepare"
	stageRotate     = "rotate"
	stageRotateKeys = "rotate_keys"
	stageReencrypt  = "reencrypt_request"
	stageActive     = "reencrypt_active"
	stageFinished   = "reencrypt_finished"
)

type encryptionState struct {
	Stage        string   `json:"stage"`
	ActiveKey    string   `json:"activekey"`
	Enable       *bool    `json:"enable,omitempty"`
	HashMatch    bool     `json:"hashmatch,omitempty"`
	HashError    string   `json:"hasherror,omitempty"`
	InactiveKeys []string `json:"inactivekeys,omitempty"`
}

type encryptionRequest struct {
	Stage  *string `json:"stage,omitempty"`
	Enable *bool   `json:"enable,omitempty"`
	Force  bool    `json:"force"`
	Skip   bool    `json:"skip"`
}

// manageEncryption is `k3s secrets-encrypt`.
func manageEncryption(arguments []string) error {
	if len(arguments) == 0 {
		usage(os.Stdout)
		return nil
	}
	s, err := parse(optionsOf(encryptOptions), arguments[1:])
	if err != nil {
		return incorrect(err)
	}
	pointer := func(stage string) *string { return &stage }
	yes, no := true, false
	requests := map[string]struct {
		encryptionRequest
		done string
	}{
		"enable":      {encryptionRequest{Enable: &yes}, "secrets-encryption enabled"},
		"disable":     {encryptionRequest{Enable: &no}, "secrets-encryption disabled"},
		"prepare":     {encryptionRequest{Stage: pointer(stagePrepare)}, "prepare completed successfully"},
		"rotate":      {encryptionRequest{Stage: pointer(stageRotate)}, "rotate completed successfully"},
		"reencrypt":   {encryptionRequest{Stage: pointer(stageActive)}, "reencryption started"},
		"rotate-keys": {encryptionRequest{Stage: pointer(stageRotateKeys)}, "keys rotated, reencryption finished"},
	}
	server, err := asServer(s)
	if err != nil {
		return err
	}
	if arguments[0] == "status" {
		return printEncryption(server, s.text("output"))
	}
	wanted, known := requests[arguments[0]]
	if !known {
		return noTopic(arguments[0])
	}
	wanted.Force, wanted.Skip = s.on("force"), s.on("skip")
	body, err := json.Marshal(wanted.encryptionRequest)
	if err != nil {
		return err
	}
	if _, err := server.send(http.MethodPut, "/v1-k3s/encrypt/config", body, nil, 2*time.Minute); err != nil {
		return wrap(err, "see server log for details")
	}
	fmt.Println(wanted.done)
	return nil
}

func printEncryption(server *access, format string) error {
	answer, err := server.get("/v1-k3s/encrypt/status")
	if err != nil {
		return wrap(err, "see server log for details")
	}
	var state encryptionState
	if err := json.Unmarshal(answer, &state); err != nil {
		return err
	}
	if strings.ToLower(format) == "json" {
		content, err := json.MarshalIndent(state, "", "\t")
		fmt.Println(string(content))
		return err
	}
	if state.Enable == nil {
		fmt.Println("Encryption Status: Disabled, no configuration file found")
		return nil
	}
	fmt.Printf("Encryption Status: %s\n", map[bool]string{true: "Enabled", false: "Disabled"}[*state.Enable])
	fmt.Println("Current Rotation Stage:", state.Stage)
	if state.HashMatch {
		fmt.Println("Server Encryption Hashes: All hashes match")
	} else {
		fmt.Printf("Server Encryption Hashes: %s\n", state.HashError)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer out.Flush()
	fmt.Fprint(out, "\nActive\tKey Type\tName\n------\t--------\t----\n")
	for number, key := range append([]string{state.ActiveKey}, state.InactiveKeys...) {
		kind, name, found := strings.Cut(key, " ")
		if found {
			fmt.Fprintf(out, "%s\t%s\t%s\n", map[bool]string{true: " *", false: ""}[number == 0], kind, name)
		}
	}
	return nil
}

func (c *cluster) encryptStatus(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if !c.apiReady() {
		sendHidden(writer, asked, errCoreReady, "secret-encrypt", http.StatusInternalServerError)
		return
	}
	state, err := c.encryption(asked.Context())
	if err != nil {
		sendHidden(writer, asked, err, "secret-encrypt", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(state)
}

func (c *cluster) encryption(ctx context.Context) (*encryptionState, error) {
	state := &encryptionState{}
	keys, enabled, err := c.encryptionKeys()
	if errors.Is(err, os.ErrNotExist) {
		return state, nil
	} else if err != nil {
		return nil, err
	}
	state.Enable = &enabled
	for number, key := range keys {
		if number == 0 && enabled {
			state.ActiveKey = "AES-CBC " + key.Name
		} else {
			state.InactiveKeys = append(state.InactiveKeys, "AES-CBC "+key.Name)
		}
	}
	if err := c.sameHashes(ctx); err != nil {
		state.HashError = err.Error()
	} else {
		state.HashMatch = true
	}
	own, err := c.api.get(ctx, "/api/v1/nodes/"+c.nodeName)
	if err != nil {
		return nil, err
	}
	state.Stage, _, _ = strings.Cut(field(own, "metadata", "annotations", hashAnnotation), "-")
	return state, nil
}

// encryptionKeys are those of the file, and whether the first one encrypts.
func (c *cluster) encryptionKeys() ([]encryptionKey, bool, error) {
	content, err := os.ReadFile(c.encryptionFile())
	if err != nil {
		return nil, false, err
	}
	var found struct {
		Resources []struct {
			Providers []struct {
				AESCBC *struct{ Keys []encryptionKey }
			}
		}
	}
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, false, err
	}
	for number, provider := range found.Resources[0].Providers {
		if provider.AESCBC != nil {
			return provider.AESCBC.Keys, number == 0, nil
		}
	}
	return nil, false, errors.New("no keys found")
}

// sameHashes compares what the servers say of their configurations.
func (c *cluster) sameHashes(ctx context.Context, stages ...string) error {
	found, err := c.api.get(ctx, "/api/v1/nodes?labelSelector="+controlPlaneLabel)
	if err != nil {
		return err
	}
	first := ""
	for number, node := range items(found) {
		value := field(node, "metadata", "annotations", hashAnnotation)
		if value == "" {
			return fmt.Errorf("missing annotation on node %s", field(node, "metadata", "name"))
		}
		if number == 0 {
			first = value
		} else if value != first {
			return fmt.Errorf("hash does not match between %s and %s", field(items(found)[0], "metadata", "name"), field(node, "metadata", "name"))
		}
	}
	stage, _, _ := strings.Cut(first, "-")
	for _, allowed := range stages {
		if stage == allowed {
			return nil
		}
	}
	if len(stages) > 0 {
		return fmt.Errorf("incorrect stage: %s found on node %s", stage, c.nodeName)
	}
	return nil
}

// announceEncryption says on the node which configuration the server has.
func (c *cluster) announceEncryption(ctx context.Context, stage string) error {
	content, err := os.ReadFile(c.encryptionFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if stage == "" {
		kept, err := os.ReadFile(c.path("cred", "encryption-state.json"))
		if err != nil {
			return err
		}
		stage, _, _ = strings.Cut(string(kept), "-")
	}
	digest := sha256.Sum256(content)
	value := stage + "-" + hex.EncodeToString(digest[:])
	return c.api.patch(ctx, "/api/v1/nodes/"+c.nodeName, object{"metadata": object{"annotations": object{hashAnnotation: value}}})
}

// encryptChange goes on if its caller has gone.
func (c *cluster) encryptChange(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if asked.Method != http.MethodPut {
		sendError(writer, asked, errors.New("method not allowed"), http.StatusMethodNotAllowed)
		return
	}
	if !c.apiReady() {
		sendError(writer, asked, errCoreReady, http.StatusServiceUnavailable)
		return
	}
	var wanted encryptionRequest
	if err := json.NewDecoder(asked.Body).Decode(&wanted); err != nil {
		sendError(writer, asked, err, http.StatusBadRequest)
		return
	}
	if err := c.changeEncryption(context.WithoutCancel(asked.Context()), wanted); err != nil {
		sendHidden(writer, asked, err, "secret-encrypt", http.StatusBadRequest)
	}
}

func (c *cluster) changeEncryption(ctx context.Context, wanted encryptionRequest) error {
	keys, enabled, err := c.encryptionKeys()
	if err != nil {
		return err
	}
	if wanted.Enable != nil {
		if *wanted.Enable == enabled {
			return nil
		}
		return c.encryptAnew(ctx, keys, *wanted.Enable, stageStart)
	}
	if wanted.Stage == nil {
		return errors.New("unknown stage requested")
	}
	allowed := map[string][]string{
		stagePrepare: {stageStart, stageFinished}, stageRotate: {stagePrepare}, stageActive: {stageRotate}, stageRotateKeys: {stageStart, stageFinished},
	}[*wanted.Stage]
	if allowed == nil {
		return fmt.Errorf("unknown stage %s requested", *wanted.Stage)
	}
	if err := c.sameHashes(ctx, allowed...); err != nil && !wanted.Force {
		return err
	}
	switch *wanted.Stage {
	case stagePrepare:
		return c.changeKeys(ctx, append(keys, newEncryptionKey()), stagePrepare)
	case stageRotate:
		last := len(keys) - 1
		return c.changeKeys(ctx, append([]encryptionKey{keys[last]}, keys[:last]...), stageRotate)
	case stageRotateKeys:
		if err := c.announceEncryption(ctx, stageActive); err != nil {
			return err
		}
		keys = append([]encryptionKey{newEncryptionKey()}, keys...)
	}
	return c.encryptAnew(ctx, keys, true, stageFinished)
}

func newEncryptionKey() encryptionKey {
	content := make([]byte, 32)
	_, err := rand.Read(content)
	failed(err)
	return encryptionKey{"aescbckey-" + time.Now().UTC().Format(time.RFC3339), base64.StdEncoding.EncodeToString(content)}
}

func (c *cluster) changeKeys(ctx context.Context, keys []encryptionKey, stage string) error {
	if err := c.writeEncryption(keys, true, stage); err != nil {
		return err
	}
	if err := c.announceEncryption(ctx, ""); err != nil {
		return err
	}
	return c.save(ctx)
}

// encryptAnew writes all Secrets again once the API server has read the configuration, and then drops the keys that are no longer needed.
func (c *cluster) encryptAnew(ctx context.Context, keys []encryptionKey, enabled bool, stage string) error {
	if err := c.writeEncryption(keys, enabled, stageActive); err != nil {
		return err
	}
	if err := c.reloaded(ctx); err != nil {
		return err
	}
	secrets, err := c.api.get(ctx, "/api/v1/secrets")
	if err != nil {
		return err
	}
	for _, secret := range items(secrets) {
		secret["apiVersion"], secret["kind"] = "v1", "Secret"
		path := "/api/v1/namespaces/" + field(secret, "metadata", "namespace") + "/secrets/" + field(secret, "metadata", "name")
		_, err := c.api.do(ctx, http.MethodPut, path, jsonType, secret)
		if err != nil && !refused(err, http.StatusConflict) && !refused(err, http.StatusNotFound) {
			return err
		}
	}
	info("reencrypted %d secrets", len(items(secrets)))
	if stage == stageFinished {
		keys = keys[:1]
	}
	if err := c.writeEncryption(keys, enabled, stage); err != nil {
		return err
	}
	if err := c.announceEncryption(ctx, ""); err != nil {
		return err
	}
	return c.save(ctx)
}

// reloaded waits until the API server counts a further configuration that it has read: it looks once a minute.
func (c *cluster) reloaded(ctx context.Context) error {
	const metric = `apiserver_encryption_config_controller_last_config_info{`
	content, err := os.ReadFile(c.encryptionFile())
	if err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	return patientlyFor(ctx, 100*time.Second, func() error {
		answer, err := c.api.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(fmt.Sprint(answer["text"]), "\n") {
			if strings.HasPrefix(line, metric) && strings.Contains(line, hex.EncodeToString(digest[:])) {
				return nil
			}
		}
		return errors.New("timed out waiting for encryption config reload")
	})
}
