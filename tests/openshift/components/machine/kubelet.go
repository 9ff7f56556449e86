package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

const (
	// As kubelet's, which renews after a quarter of it.
	leaseSeconds = 40
	// Of requests that report: a later one takes their place.
	reportTimeout = 10 * time.Second
	// Longest wait between two attempts to register (pkg/kubelet/kubelet_node_status.go).
	registerPause = 7 * time.Second
)

// keepNode ends with the context, or with an error of what this machine has to give: its folder and its ports.
func keepNode(ctx context.Context, o options, said *once) error {
	f := filesOf(o.root)
	if err := f.create(); err != nil {
		return err
	}
	identity, err := clientManager(f, o.name)
	if err != nil {
		return err
	}
	identity.Start()
	defer identity.Stop()
	if identity.Current() == nil {
		slog.Info("waiting for the client certificate, whose request has to be approved")
	}
	if wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(context.Context) (bool, error) { return identity.Current() != nil, nil }) != nil {
		return nil
	}
	client, reporting, err := clientsOf(ctx, f, identity)
	if err != nil {
		return err
	}
	if !registered(ctx, reporting, o) {
		return nil
	}
	said.forget()
	slog.Info("the Node is registered")
	ended := make(chan error, 2)
	go func() { ended <- forwardAll(ctx, o.forwards) }()
	serving, err := servingManager(f, client, o.name, o.address)
	if err != nil {
		return err
	}
	serving.Start()
	defer serving.Stop()
	go func() { ended <- serve(ctx, o, serving) }()
	go leaseOf(reporting, o.name).Run(ctx)
	go keepReporting(ctx, reporting, o, said)
	for range cap(ended) {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// clientsOf returns one client without a timeout, which watches, and one that reports.
func clientsOf(ctx context.Context, f files, identity certificate.Manager) (client, reporting kubernetes.Interface, err error) {
	config, err := ownConfig(ctx, f, identity)
	if err != nil {
		return nil, nil, err
	}
	limited := rest.CopyConfig(config)
	limited.Timeout = reportTimeout
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	reporting, err = kubernetes.NewForConfig(limited)
	return client, reporting, err
}

// registered returns false if the context has ended before.
func registered(ctx context.Context, client kubernetes.Interface, o options) bool {
	pause := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 20, Cap: registerPause}
	for {
		err := register(ctx, client, o)
		if err == nil {
			return true
		}
		slog.Warn("the Node is not registered", "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause.Step()):
		}
	}
}

func keepReporting(ctx context.Context, client kubernetes.Interface, o options, said *once) {
	var last time.Time
	failed := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		reported, err := keepReady(ctx, client, o, last)
		switch {
		case err != nil && ctx.Err() == nil:
			failed = true
			slog.Warn("the status is not reported", "err", err)
		case err == nil && failed:
			failed = false
			said.forget()
			slog.Info("the status is reported again")
		}
		last = reported
	}, o.interval)
}

func leaseOf(client kubernetes.Interface, name string) lease.Controller {
	owned := func(one *coordination.Lease) error {
		if len(one.OwnerReferences) > 0 {
			return nil
		}
		node, err := client.CoreV1().Nodes().Get(context.Background(), name, meta.GetOptions{})
		if err != nil {
			return err
		}
		one.OwnerReferences = []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}
		return nil
	}
	interval := leaseSeconds * time.Second / 4
	return lease.NewController(clock.RealClock{}, client, name, leaseSeconds, nil, interval, name, core.NamespaceNodeLease, owned)
}

// serve answers /healthz over TLS, and passes on requests for logs, with 404 for all else. Without a certificate it refuses handshakes, as kubelet does.
func serve(ctx context.Context, o options, serving certificate.Manager) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "ok") })
	if o.logs != "" {
		mux.Handle("/containerLogs/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: o.logs}))
	}
	server := &http.Server{
		Addr:              net.JoinHostPort(o.address.String(), strconv.FormatUint(uint64(o.port), 10)),
		Handler:           mux,
		ReadHeaderTimeout: reportTimeout,
		ErrorLog:          log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				if current := serving.Current(); current != nil {
					return current, nil
				}
				return nil, errors.New("no serving certificate available for the kubelet")
			},
		},
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("its TLS server: %w", err)
	}
	return nil
}
