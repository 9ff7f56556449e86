// Command controlplane holds etcd, the Kubernetes control plane and kwok in one static binary.
// It becomes the component that its own file name (argv[0]) says: the components share global flag
// sets and metric registries, so each must be a process of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	component := filepath.Base(os.Args[0])
	switch component {
	case "etcd":
		os.Exit(runEtcd())
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kwok":
		os.Exit(runKwok())
	default:
		fmt.Fprintf(os.Stderr, "%q is no component: call this binary as etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kwok\n", component)
		os.Exit(64)
	}
}

// runEtcd takes the flag that etcd's own command takes: --config-file PATH.
func runEtcd() int {
	path := flag.String("config-file", "", "etcd configuration file")
	flag.Parse()
	config, err := embed.ConfigFromFile(*path)
	if err != nil {
		fmt.Fprintf(os.Stderr, "etcd: reading %s: %v\n", *path, err)
		return 1
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintf(os.Stderr, "etcd: starting: %v\n", err)
		return 1
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	select {
	case <-stop.Done():
		server.Close()
		return 0
	case err := <-server.Err():
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		return 1
	}
}

// runKwok does what kwok's own main does: its global flags (--config, --v) fill the context first, without
// which there are no stages and kwok ends.
func runKwok() int {
	// Kubernetes' packages register a global --version flag that kwok's command declares again.
	flag.CommandLine = flag.NewFlagSet("kwok", flag.ExitOnError)
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	ctx, _ = kwoklog.InitFlags(ctx, global)
	ctx, err := kwokconfig.InitFlags(ctx, global)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kwok: reading its configuration: %v\n", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return 1
	}
	return 0
}
