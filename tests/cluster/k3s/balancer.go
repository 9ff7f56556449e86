package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// balancer forwards connections of the node to one of the servers, so that the node survives the loss of that which it joined by.
type balancer struct {
	file     string
	port     string
	original string
	lock     sync.Mutex
	servers  []string
}

type balancerState struct {
	ServerURL       string
	ServerAddresses []string
}

// newBalancer knows the servers of the last time, if they belong to the same address.
func newBalancer(file, server, port string) (*balancer, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	original := parsed.Host
	if parsed.Port() == "" {
		original = net.JoinHostPort(parsed.Hostname(), "443")
	}
	b := &balancer{file: file, port: port, original: original, servers: []string{original}}
	content, err := os.ReadFile(file)
	var known balancerState
	if err == nil && json.Unmarshal(content, &known) == nil && known.ServerURL == server && len(known.ServerAddresses) > 0 {
		b.servers = known.ServerAddresses
	}
	return b, b.save(server)
}

func (b *balancer) save(server string) error {
	content, err := json.Marshal(balancerState{server, b.servers})
	if err != nil {
		return err
	}
	return store(b.file, content, 0o600)
}

func (b *balancer) listen() error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", b.port))
	if err != nil {
		return err
	}
	info("Running load balancer k3s-agent-load-balancer 127.0.0.1:%s -> %v [default: %s]", b.port, b.servers, b.original)
	go accept(listener, b.forward)
	return nil
}

func accept(listener net.Listener, handle func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go handle(connection)
		}
	}
}

// join copies between two connections until one of them ends.
func join(one, other net.Conn) {
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{one, other}, {other, one}} {
		go func() {
			_, _ = io.Copy(pair[1], pair[0])
			done <- struct{}{}
		}()
	}
	<-done
}

func (b *balancer) candidates() []string {
	b.lock.Lock()
	defer b.lock.Unlock()
	all := slices.Clone(b.servers)
	if !slices.Contains(all, b.original) {
		all = append(all, b.original)
	}
	return all
}

// forward tries the servers in their order; one that does not answer becomes the last.
func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	for _, address := range b.candidates() {
		server, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err != nil {
			b.demote(address)
			continue
		}
		defer server.Close()
		join(client, server)
		return
	}
}

func (b *balancer) demote(address string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if number := slices.Index(b.servers, address); number >= 0 {
		b.servers = append(slices.Delete(b.servers, number, number+1), address)
	}
}

// follow learns the servers from the Service of the API server.
func (b *balancer) follow(ctx context.Context, a *agent) {
	for ; ctx.Err() == nil; pause(ctx, 5*time.Second) {
		answer, err := a.access.get("/v1-k3s/apiservers")
		if err != nil {
			continue
		}
		var found []string
		if json.Unmarshal(answer, &found) != nil || len(found) == 0 {
			continue
		}
		b.lock.Lock()
		known := slices.Sorted(slices.Values(b.servers))
		changed := !slices.Equal(known, slices.Sorted(slices.Values(found)))
		if changed {
			b.servers = found
			info("Updated load balancer k3s-agent-load-balancer server addresses -> %v [default: %s]", found, b.original)
			if err := b.save(a.text("server")); err != nil {
				problem("Failed to save the state of the load balancer: %v", err)
			}
		}
		b.lock.Unlock()
	}
}
