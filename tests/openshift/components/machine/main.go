// Command machine is a stand-in for kubelet: it runs no pods. What it does on a machine that Ignition has configured is what kubelet does until and after
// its Node is there: it files both requests for certificates with the identity that Ignition gave it, registers its Node and keeps it Ready, renews its Lease,
// and serves TLS. Certificates are managed by kubelet's own code (k8s.io/client-go/util/certificate), and the Lease too (k8s.io/component-helpers).
// Roles are registered as by OpenShift's kubelet (templates/{master,worker}/01-*-kubelet of machine-config-operator).
//
// It touches nothing but the folder that it is given, its ports and the API, and needs no other program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

const usage = `machine: a stand-in for kubelet, which runs no pods

machine node --root DIR --name NAME --address IP [--role master|worker] [--port PORT]
             [--node-status-interval DURATION] [--forward PORT=HOST:PORT,...] [--logs HOST:PORT]

  Joins the cluster of the kubeconfig DIR/etc/kubernetes/kubeconfig, whose identity may only file requests for certificates, as the Node NAME.
  Its own kubeconfig and certificates are in DIR/var/lib/kubelet, and it uses them when it is started again.

  --root      / on a machine of its own
  --name      name of the Node, and of its certificates
  --address   its InternalIP, at which it also listens
  --role      worker by default
  --port      of its TLS server, 10250 by default; it answers /healthz
  --node-status-interval
              how often its Node is looked at, 10s by default
  --forward   TCP ports that it passes on once its Node is registered, as 6443=10.0.0.1:6443
  --logs      HTTP server of whoever plays its pods, from which it passes on their logs

machine forward [--address IP] PORT=HOST:PORT ...

  Only passes on TCP ports, from all addresses unless one is given.

Each message is printed once, also while the API is away for long, until the API has answered. It ends with SIGTERM.
`

type options struct {
	root, name, role string
	logs             string
	address          netip.Addr
	port             uint
	interval         time.Duration
	forwards         []forward
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "machine: %v\n\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "machine: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong arguments")

func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) == 0 {
		return fmt.Errorf("%w: no command", errUsage)
	}
	said := newOnce(out)
	slog.SetDefault(slog.New(said))
	klog.SetSlogLogger(slog.Default())
	switch command, rest := arguments[0], arguments[1:]; command {
	case "--help", "-h", "help":
		fmt.Fprint(out, usage)
		return nil
	case "node":
		o, err := nodeOptions(rest)
		if err != nil {
			return err
		}
		slog.Info("a stand-in for kubelet, which runs no pods", "node", o.name, "role", o.role)
		return keepNode(ctx, o, said)
	case "forward":
		forwards, err := forwardOptions(rest)
		if err != nil {
			return err
		}
		slog.Info("a stand-in for the servers of a machine")
		return forwardAll(ctx, forwards)
	default:
		return fmt.Errorf("%w: there is no command %s", errUsage, command)
	}
}

func flags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

func nodeOptions(arguments []string) (options, error) {
	var o options
	var forwarded string
	set := flags("node")
	set.StringVar(&o.root, "root", "", "")
	set.StringVar(&o.name, "name", "", "")
	set.StringVar(&o.role, "role", worker, "")
	set.TextVar(&o.address, "address", netip.Addr{}, "")
	set.UintVar(&o.port, "port", 10250, "")
	set.DurationVar(&o.interval, "node-status-interval", 10*time.Second, "")
	set.StringVar(&forwarded, "forward", "", "")
	set.StringVar(&o.logs, "logs", "", "")
	if err := set.Parse(arguments); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("%w: %s is one too many", errUsage, set.Arg(0))
	case o.root == "" || o.name == "" || !o.address.IsValid():
		return o, fmt.Errorf("%w: node needs --root, --name and --address", errUsage)
	case roles[o.role] == nil:
		return o, fmt.Errorf("%w: --role is master or worker, not %s", errUsage, o.role)
	case o.port == 0 || o.port > 65535:
		return o, fmt.Errorf("%w: --port is 1 to 65535, not %d", errUsage, o.port)
	case o.interval <= 0:
		return o, fmt.Errorf("%w: --node-status-interval is more than 0, not %s", errUsage, o.interval)
	case forwarded == "":
		return o, nil
	}
	var err error
	o.forwards, err = parseForwards(o.address.String(), strings.Split(forwarded, ","))
	return o, err
}

func forwardOptions(arguments []string) ([]forward, error) {
	set := flags("forward")
	address := set.String("address", "", "")
	if err := set.Parse(arguments); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if set.NArg() == 0 {
		return nil, fmt.Errorf("%w: forward needs PORT=HOST:PORT", errUsage)
	}
	return parseForwards(*address, set.Args())
}
