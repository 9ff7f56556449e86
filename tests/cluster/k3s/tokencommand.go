package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

const tokenOptions = `
data-dir,d text =/var/lib/rancher/k3s
kubeconfig text KUBECONFIG =/etc/rancher/k3s/k3s.yaml
server,s text K3S_URL =https://127.0.0.1:6443
token,t text K3S_TOKEN
new-token text
description text
groups list =system:bootstrappers:k3s:default-node-token
ttl text =24h0m0s
usages list =signing,authentication
output,o text
`

const alphabet = "bcdfghjklmnpqrstvwxz2456789"

func randomWord(length int) string {
	word := make([]byte, length)
	for number := range word {
		word[number] = alphabet[serial().Int64()%int64(len(alphabet))]
	}
	return string(word)
}

// manageTokens is `k3s token`.
func manageTokens(arguments []string) error {
	if len(arguments) == 0 {
		usage(os.Stdout)
		return nil
	}
	s, err := parse(optionsOf(tokenOptions), arguments[1:])
	if err != nil {
		return incorrect(err)
	}
	switch arguments[0] {
	case "create":
		return createToken(s)
	case "delete":
		return deleteTokens(s)
	case "generate":
		fmt.Println(randomWord(6) + "." + randomWord(16))
		return nil
	case "list":
		return listTokens(s)
	case "rotate":
		return rotateByServer(s)
	}
	return noTopic(arguments[0])
}

func noTopic(name string) error {
	fmt.Printf("No help topic for '%s'\n", name)
	os.Exit(3)
	return nil
}

// administrator asks the API server as the kubeconfig of administrators does.
func administrator(s *settings) (*apiClient, []byte, error) {
	folder := s.text("data-dir") + "/server/tls/"
	ca, err := os.ReadFile(folder + "server-ca.crt")
	if err != nil {
		return nil, nil, err
	}
	client, err := newAPIClient("https://127.0.0.1:6443", folder+"server-ca.crt", folder+"client-admin.crt", folder+"client-admin.key")
	return client, ca, err
}

func createToken(s *settings) error {
	api, ca, err := administrator(s)
	if err != nil {
		return err
	}
	token := randomWord(6) + "." + randomWord(16)
	if len(s.rest) > 0 {
		token = s.rest[0]
	}
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return fmt.Errorf("the bootstrap token %q was not of the form %q", token, `\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	}
	ttl, err := time.ParseDuration(s.text("ttl"))
	if err != nil {
		return fmt.Errorf("invalid value %q for flag -ttl: parse error", s.text("ttl"))
	}
	data := map[string]string{
		"token-id": parts[1], "token-secret": parts[2], "description": s.text("description"), "auth-extra-groups": strings.Join(s.list("groups"), ","),
	}
	for _, use := range s.list("usages") {
		data["usage-bootstrap-"+use] = "true"
	}
	if ttl > 0 {
		data["expiration"] = time.Now().Add(ttl).UTC().Format(time.RFC3339)
	}
	secret := object{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "metadata": object{"name": "bootstrap-token-" + parts[1]},
		"stringData": data,
	}
	_, err = api.do(context.Background(), http.MethodPost, "/api/v1/namespaces/kube-system/secrets", jsonType, secret)
	if refused(err, http.StatusConflict) {
		return fmt.Errorf("a token with id %q already exists", parts[1])
	} else if err != nil {
		return err
	}
	fmt.Println(tokenPrefix + caHash(ca) + "::" + token)
	return nil
}

func deleteTokens(s *settings) error {
	if len(s.rest) == 0 {
		return errors.New("missing argument; 'token delete' is missing token")
	}
	api, _, err := administrator(s)
	if err != nil {
		return err
	}
	for _, token := range s.rest {
		id, _, _ := strings.Cut(token, ".")
		_, err := api.do(context.Background(), http.MethodDelete, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-"+id, jsonType, nil)
		if err != nil {
			return fmt.Errorf("failed to delete bootstrap token %q: %w", id, err)
		}
		fmt.Printf("bootstrap token %q deleted\n", id)
	}
	return nil
}

func listTokens(s *settings) error {
	api, _, err := administrator(s)
	if err != nil {
		return err
	}
	const path = "/api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io/token"
	found, err := api.get(context.Background(), path)
	if err != nil {
		return wrap(err, "failed to list bootstrap tokens")
	}
	tokens := []map[string]string{}
	for _, secret := range items(found) {
		data, _ := secret["data"].(object)
		values := map[string]string{}
		for key, value := range data {
			content, _ := base64.StdEncoding.DecodeString(fmt.Sprint(value))
			values[key] = string(content)
		}
		tokens = append(tokens, values)
	}
	if s.text("output") == "json" {
		return json.NewEncoder(os.Stdout).Encode(tokens)
	}
	out := tabwriter.NewWriter(os.Stdout, 10, 4, 3, ' ', 0)
	defer out.Flush()
	fmt.Fprintln(out, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	for _, one := range tokens {
		ttl, expires := "<forever>", "<never>"
		if end, err := time.Parse(time.RFC3339, one["expiration"]); err == nil {
			ttl, expires = time.Until(end).Round(time.Minute).String(), one["expiration"]
		}
		var uses []string
		for _, use := range []string{"authentication", "signing"} {
			if one["usage-bootstrap-"+use] == "true" {
				uses = append(uses, use)
			}
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", one["token-id"], ttl, expires, orNone(strings.Join(uses, ",")), orNone(one["description"]),
			orNone(one["auth-extra-groups"]))
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// asServer is access to the supervisor with the token of servers.
func asServer(s *settings) (*access, error) {
	token := s.text("token")
	if token == "" {
		content, err := os.ReadFile(s.text("data-dir") + "/server/token")
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(content))
	}
	return validated(s.text("server"), token, "server")
}

func rotateByServer(s *settings) error {
	fmt.Println("\033[33mWARNING\033[0m: Recommended to keep a record of the old token. If restoring from a snapshot, you must use the token associated with that snapshot.")
	server, err := asServer(s)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"newToken": s.text("new-token")})
	if err != nil {
		return err
	}
	if _, err := server.send(http.MethodPut, "/v1-k3s/token", body, nil, 0); err != nil {
		return err
	}
	fmt.Println("Token rotated, restart k3s nodes with new token")
	return nil
}

// rotateToken, which goes on if its caller has gone, changes the password of servers, with which data of the datastore is encrypted anew.
func (c *cluster) rotateToken(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	if asked.Method != http.MethodPut {
		sendError(writer, asked, errors.New("method not allowed"), http.StatusMethodNotAllowed)
		return
	}
	var body struct {
		NewToken string `json:"newToken"`
	}
	if err := json.NewDecoder(asked.Body).Decode(&body); err != nil {
		sendError(writer, asked, err, http.StatusBadRequest)
		return
	}
	if err := c.changeToken(context.WithoutCancel(asked.Context()), body.NewToken); err != nil {
		sendHidden(writer, asked, err, "token", http.StatusInternalServerError)
	}
}

func (c *cluster) changeToken(ctx context.Context, token string) error {
	passwords := c.passwords()
	old, agent := passwords["server"], passwords["node"]
	if token == "" {
		token = random(16)
	}
	password, err := normalized(token)
	if err != nil {
		return err
	}
	if agent == old && c.agentToken == "" {
		agent = password
	}
	if err := c.writePasswords(password, agent); err != nil {
		return err
	}
	c.token = password
	if err := c.writeTokens(); err != nil {
		return err
	}
	if err := c.etcd.delete(ctx, storageKey(old)); err != nil {
		return err
	}
	return c.save(ctx)
}
