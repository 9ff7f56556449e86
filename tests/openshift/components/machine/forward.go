package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// How long the far end may take to accept a connection.
const dialTimeout = 10 * time.Second

// forward is from an own address with a port to another.
type forward struct{ from, to string }

// parseForwards reads PORT=HOST:PORT. address: where they listen, "" for all.
func parseForwards(address string, texts []string) ([]forward, error) {
	found := make([]forward, 0, len(texts))
	for _, text := range texts {
		port, to, _ := strings.Cut(text, "=")
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fmt.Errorf("%w: %s is not PORT=HOST:PORT", errUsage, text)
		}
		if _, farPort, err := net.SplitHostPort(to); err != nil || farPort == "" {
			return nil, fmt.Errorf("%w: %s is not PORT=HOST:PORT", errUsage, text)
		}
		found = append(found, forward{net.JoinHostPort(address, port), to})
	}
	return found, nil
}

// forwardAll listens until the context ends.
func forwardAll(ctx context.Context, forwards []forward) error {
	for _, one := range forwards {
		listener, err := net.Listen("tcp", one.from)
		if err != nil {
			return err
		}
		defer listener.Close()
		slog.Info("passes on", "from", listener.Addr(), "to", one.to)
		go accept(ctx, listener, one.to)
	}
	<-ctx.Done()
	return nil
}

func accept(ctx context.Context, listener net.Listener, to string) {
	for {
		near, err := listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Warn("a connection was not accepted", "err", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go pass(ctx, near.(*net.TCPConn), to)
	}
}

func pass(ctx context.Context, near *net.TCPConn, to string) {
	defer near.Close()
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		slog.Warn("a connection was not passed on", "err", err)
		return
	}
	far := connection.(*net.TCPConn)
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyAndEnd(far, near)
	}()
	copyAndEnd(near, far)
	<-done
}

// copyAndEnd passes on the end too, while the other direction may go on.
func copyAndEnd(to, from *net.TCPConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
}
