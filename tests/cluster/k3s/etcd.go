package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// Where etcd of a server with SQLite listens, which has no ports in K3s.
	privateClient, privatePeer = "http://127.0.0.1:2395", "http://127.0.0.1:2396"
	// Where an etcd for one step listens.
	briefClient, briefPeer = "http://127.0.0.1:2399", "http://127.0.0.1:2400"
)

// gateway of JSON: etcd serves it apart from gRPC, which has the other ports to itself.
const gateway = "https://127.0.0.1:2382"

// gatewayOf is that of another server, by its address for clients. K3s has none there: it speaks gRPC to others, and the stand-in JSON.
func gatewayOf(client string) string {
	return strings.Replace(strings.TrimRight(client, "/"), ":2379", ":2382", 1)
}

// datastoreURL is where the API server reaches its datastore, by gRPC.
func (c *cluster) datastoreURL() string {
	if c.etcd.endpoint == gateway {
		return "https://127.0.0.1:2379"
	}
	return c.etcd.endpoint
}

func (c *cluster) etcdFolder() string { return c.path("db", "etcd") }

func (c *cluster) peerURL() string { return fmt.Sprintf("https://%s:2380", c.address) }

func (c *cluster) clientURL() string { return fmt.Sprintf("https://%s:2379", c.address) }

// memberName is made once, or again when a reset makes a new member of the server.
func (c *cluster) memberName(again bool) (string, error) {
	file := filepath.Join(c.etcdFolder(), "name")
	if content, err := os.ReadFile(file); err == nil && !again {
		return string(content), nil
	}
	name := c.nodeName + "-" + random(4)
	return name, store(file, []byte(name), 0o600)
}

func (c *cluster) ownEtcd() (*etcdClient, error) {
	setup, err := mutual(c.path("tls", "etcd", "server-ca.crt"), c.path("tls", "etcd", "client.crt"), c.path("tls", "etcd", "client.key"))
	if err != nil {
		return nil, err
	}
	return newEtcdClient(gateway, setup), nil
}

// member runs the server's member. initial: the members of the cluster that it starts with, "" if it has been started before.
func (c *cluster) member(initial, state string) error {
	one, err := c.memberProgram(initial, state, false)
	if err != nil {
		return err
	}
	one.onEnd = c.noteRemoval
	return one.start(part("etcd"), one.arguments...)
}

func (c *cluster) memberProgram(initial, state string, reset bool) (*program, error) {
	name, err := c.memberName(false)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(c.etcdFolder(), 0o700); err != nil {
		return nil, err
	}
	clients, peers, advertised := "https://127.0.0.1:2379", "https://127.0.0.1:2380", "https://127.0.0.1:2379"
	gateways := gateway
	if !reset {
		gateways += "," + gatewayOf(c.clientURL())
		clients, peers, advertised = clients+","+c.clientURL(), peers+","+c.peerURL(), c.clientURL()
	}
	metrics := "http://127.0.0.1:2381"
	if c.on("etcd-expose-metrics") && !reset {
		metrics += fmt.Sprintf(",http://%s:2381", c.address)
	}
	file := func(name string) string { return c.path("tls", "etcd", name) }
	defaults := map[string]string{
		"name":                    name,
		"listen-client-http-urls": gateways,
		"data-dir":                c.etcdFolder(),
		"listen-client-urls":      clients,
		"advertise-client-urls":   advertised,
		"listen-peer-urls":        peers,
		"listen-metrics-urls":     metrics,
		"client-cert-auth":        "true",
		"trusted-ca-file":         file("server-ca.crt"),
		"cert-file":               file("server-client.crt"),
		"key-file":                file("server-client.key"),
		"peer-client-cert-auth":   "true",
		"peer-trusted-ca-file":    file("peer-ca.crt"),
		"peer-cert-file":          file("peer-server-client.crt"),
		"peer-key-file":           file("peer-server-client.key"),
		"election-timeout":        "5000",
		"heartbeat-interval":      "500",
		"snapshot-count":          "10000",
		"logger":                  "zap",
		"log-outputs":             "stderr",
		"log-level":               "warn",
	}
	if initial != "" {
		defaults["initial-cluster"], defaults["initial-cluster-state"] = initial, state
		defaults["initial-advertise-peer-urls"] = c.peerURL()
	}
	if reset {
		defaults["force-new-cluster"] = "true"
	}
	return &program{name: "etcd", orderly: true, arguments: componentArguments(defaults, c.raw("etcd-arg"))}, nil
}

// noteRemoval leaves a mark if the member has ended because it is no longer one: the next start then joins as a new one.
func (c *cluster) noteRemoval() {
	name, err := c.memberName(false)
	if err != nil {
		return
	}
	for _, endpoint := range c.others {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		members, err := (&etcdClient{gatewayOf(endpoint), c.etcd.client}).members(ctx)
		cancel()
		if err != nil {
			continue
		}
		if slices.ContainsFunc(members, func(one member) bool { return one.Name == name }) {
			return
		}
		if err := store(filepath.Join(c.etcdFolder(), "tombstone"), nil, 0o600); err == nil {
			info("This node has been removed from the cluster - please restart k3s to rejoin the cluster")
		}
		return
	}
}

// startManaged starts the member of a server: the first one of a new cluster, that which is there, or one that joins.
func (c *cluster) startManaged(ctx context.Context) error {
	if exists(filepath.Join(c.etcdFolder(), "tombstone")) {
		info("tombstone file has been detected, removing data dir to rejoin the cluster")
		if _, err := backup(c.etcdFolder()); err != nil {
			return err
		}
	}
	initialized := exists(c.path("db", "etcd", "member", "wal"))
	name, err := c.memberName(false)
	if err != nil {
		return err
	}
	if c.etcd, err = c.ownEtcd(); err != nil {
		return err
	}
	switch {
	case initialized:
		info("Starting etcd for existing cluster member")
		err = c.member("", "")
	case c.join == nil:
		info("Starting etcd for new cluster, cluster-reset=false")
		if err = c.member(name+"="+c.peerURL(), "new"); err == nil {
			err = c.migrate(ctx)
		}
	default:
		go c.joinWhenReady(ctx)
	}
	if err == nil {
		go c.awaitVote(ctx)
		go c.manageLearners(ctx)
	}
	return err
}

// joinWhenReady waits for the container runtime, because a member that joins and does not start costs the cluster a vote.
func (c *cluster) joinWhenReady(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready.runtime:
	}
	joined := patiently(ctx, time.Second, func() error {
		err := c.joinCluster(ctx)
		if err == nil {
			return nil
		}
		for _, expected := range []string{"too many learner members", "unhealthy cluster", "failed to get MemberList"} {
			if strings.Contains(err.Error(), expected) {
				info("Waiting for other members to finish joining etcd cluster: %v", err)
				return err
			}
		}
		fatal("etcd cluster join failed: %v", err)
		return nil
	})
	if !joined {
		info("The server has been stopped before it joined the etcd cluster")
	}
}

func (c *cluster) joinCluster(ctx context.Context) error {
	answer, err := c.join.get("/db/info")
	if err != nil {
		return fmt.Errorf("failed to get MemberList from server: %w", err)
	}
	var found struct{ Members []member }
	if err := json.Unmarshal(answer, &found); err != nil {
		return err
	}
	name, err := c.memberName(false)
	if err != nil {
		return err
	}
	var initial []string
	var others []string
	add := true
	for _, one := range found.Members {
		if len(one.PeerURLs) == 0 {
			continue
		}
		peer, err := url.Parse(one.PeerURLs[0])
		if err != nil {
			return err
		}
		if one.Name == "" && peer.Hostname() == c.address {
			one.Name = name
		}
		if one.Name == name && peer.Hostname() == c.address {
			add = false
		} else if node := one.Name[:max(strings.LastIndex(one.Name, "-"), 0)]; node == c.nodeName {
			_ = os.Remove(filepath.Join(c.etcdFolder(), "name"))
			return errors.New("duplicate node name found, please use a unique name for this node")
		} else if !one.IsLearner {
			others = append(others, one.ClientURLs...)
		}
		initial = append(initial, one.Name+"="+one.PeerURLs[0])
	}
	if add {
		info("Adding member %s=%s to etcd cluster %v", name, c.peerURL(), initial)
		if err := c.addMember(ctx, others); err != nil {
			return err
		}
		initial = append(initial, name+"="+c.peerURL())
	}
	info("Starting etcd to join cluster with members %v", initial)
	return c.member(strings.Join(initial, ","), "existing")
}

// addMember asks the members one after another, because one of them may be gone.
func (c *cluster) addMember(ctx context.Context, endpoints []string) error {
	err := errors.New("failed to get MemberList from server: no members")
	for _, endpoint := range endpoints {
		other := &etcdClient{gatewayOf(endpoint), c.etcd.client}
		if err = other.addLearner(ctx, c.peerURL()); err == nil {
			return nil
		}
	}
	return err
}

// awaitVote tells the others parts that the datastore works, as soon as the member votes.
func (c *cluster) awaitVote(ctx context.Context) {
	if patiently(ctx, time.Second, func() error {
		err := c.test(ctx)
		if err != nil {
			info("Failed to test etcd connection: %v", err)
		}
		return err
	}) {
		info("Connection to etcd is ready")
		close(c.ready.etcd)
	}
}

func (c *cluster) test(ctx context.Context) error {
	status, err := c.etcd.status(ctx)
	if err != nil {
		return err
	}
	if status.IsLearner {
		return errors.New("this server has not yet been promoted from learner to voting member")
	}
	if len(status.Errors) > 0 {
		return fmt.Errorf("etcd cluster errors: %s", strings.Join(status.Errors, ", "))
	}
	members, err := c.etcd.members(ctx)
	if err != nil {
		return err
	}
	name, err := c.memberName(false)
	if err != nil {
		return err
	}
	var known []string
	for _, one := range members {
		if one.Name == name && len(one.PeerURLs) > 0 && one.PeerURLs[0] == c.peerURL() {
			return nil
		}
		known = append(known, one.Name+"="+strings.Join(one.PeerURLs, ","))
	}
	return fmt.Errorf("this server is a not a member of the etcd cluster. Found %v, expect: %s=%s", known, name, c.peerURL())
}

// manageLearners promotes learners from the leader's server. K3s looks each 15 seconds; the stand-in more often, which makes no difference but time.
func (c *cluster) manageLearners(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 2*time.Second) {
		status, err := c.etcd.status(ctx)
		if err != nil {
			continue
		}
		members, err := c.etcd.members(ctx)
		if err != nil {
			problem("Failed to get etcd members for learner management: %v", err)
			continue
		}
		c.others = nil
		for _, one := range members {
			if !slices.Contains(one.ClientURLs, c.clientURL()) {
				c.others = append(c.others, one.ClientURLs...)
			}
		}
		if status.Leader != status.Header.MemberID {
			continue
		}
		for _, one := range members {
			if one.IsLearner && c.etcd.promote(ctx, one.ID) == nil {
				info("Promoted learner %s", one.Name)
			}
		}
	}
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// removeMember takes the member of a server that has left out of the cluster.
func (c *cluster) removeMember(ctx context.Context, name, address string) error {
	members, err := c.etcd.members(ctx)
	if err != nil {
		return err
	}
	for _, one := range members {
		for _, peer := range one.PeerURLs {
			if parsed, err := url.Parse(peer); err == nil && one.Name == name && parsed.Hostname() == address {
				info("Removing name=%s id=%s address=%s from etcd", one.Name, one.ID, address)
				return c.etcd.remove(ctx, one.ID)
			}
		}
	}
	return nil
}
