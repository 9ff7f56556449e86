package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func (c *cluster) resetFlag() string { return c.path("db", "reset-flag") }

// reset makes the server the only member of its cluster, with the data of a snapshot if one is named, and ends.
func (c *cluster) reset(ctx context.Context) error {
	snapshot := c.text("cluster-reset-restore-path")
	if snapshot == "" && exists(c.resetFlag()) {
		return fmt.Errorf("starting kubernetes: preparing server: start managed database: cluster-reset was successfully performed, please remove the cluster-reset "+
			"flag and start k3s normally, if you need to perform another cluster reset, you must first manually delete the %s file", c.resetFlag())
	}
	c.managed = true
	// A server that runs has this port.
	listener, err := net.Listen("tcp", net.JoinHostPort(c.text("bind-address"), c.text("https-listen-port")))
	if err != nil {
		return wrap(err, "preparing server: failed to start supervisor listener")
	}
	defer listener.Close()
	for _, name := range []string{"etc", "tls", "cred", "db"} {
		if err := os.MkdirAll(c.path(name), 0o700); err != nil {
			return err
		}
	}
	if snapshot != "" {
		if err := c.restore(ctx, snapshot); err != nil {
			return wrap(err, "failed to start cluster")
		}
	} else if !exists(c.path("db", "etcd", "member", "wal")) {
		return errors.New("failed to start cluster: etcd database not found in " + c.path())
	}
	// A snapshot of another token is found out before any file of the server changes.
	err = c.withCopy(ctx, c.etcdFolder(), func(etcd *etcdClient) error {
		found, err := c.fromDatastore(ctx, etcd)
		if err == nil && !found {
			err = errors.New("no bootstrap data found in datastore - check server token value and verify datastore integrity")
		}
		return err
	})
	if err != nil {
		return wrap(err, "failed to bootstrap cluster data")
	}
	if err := c.generate(); err != nil {
		return err
	}
	if err := c.becomeOnly(ctx); err != nil {
		return err
	}
	if err := store(c.resetFlag(), nil, 0o600); err != nil {
		return err
	}
	info("Managed etcd cluster membership has been reset, restart without --cluster-reset flag now. " +
		"Backup and delete ${datadir}/server/db on each peer etcd server and rejoin the nodes")
	return nil
}

// restore puts the data of a snapshot where the member has its own, which are kept beside it.
func (c *cluster) restore(ctx context.Context, snapshot string) error {
	found, err := os.Stat(snapshot)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("etcd: snapshot path does not exist: %s", snapshot)
	} else if err != nil {
		return err
	} else if found.IsDir() {
		return fmt.Errorf("etcd: snapshot path must be a file, not a directory: %s", snapshot)
	}
	if strings.HasSuffix(snapshot, ".zip") {
		info("Decompressing etcd snapshot file: %s", snapshot)
		if snapshot, err = unzipped(snapshot, c.path("db")); err != nil {
			return err
		}
		defer os.Remove(snapshot)
	}
	if exists(c.etcdFolder()) {
		kept, err := backup(c.etcdFolder())
		if err != nil {
			return err
		}
		info("Pre-restore etcd database moved to %s", kept)
	}
	name := c.nodeName + "-" + random(4)
	arguments := []string{
		"snapshot", "restore", snapshot, "--name=" + name, "--data-dir=" + c.etcdFolder(), "--initial-cluster=" + name + "=" + c.peerURL(),
		"--initial-advertise-peer-urls=" + c.peerURL(),
	}
	if output, err := exec.CommandContext(ctx, part("etcdutl"), arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return store(filepath.Join(c.etcdFolder(), "name"), []byte(name), 0o600)
}

// backup moves a folder aside, and keeps five of them.
func backup(folder string) (string, error) {
	kept := fmt.Sprintf("%s-old-%d", folder, time.Now().Unix())
	if err := os.Rename(folder, kept); err != nil {
		return "", err
	}
	older, err := filepath.Glob(folder + "-old-*")
	if err != nil {
		return "", err
	}
	slices.Sort(older)
	for len(older) > 5 {
		if err := os.RemoveAll(older[0]); err != nil {
			return "", err
		}
		older = older[1:]
	}
	return kept, nil
}

// becomeOnly starts the member once without the others, under a name that none of them knows.
func (c *cluster) becomeOnly(ctx context.Context) error {
	name, err := c.memberName(c.text("cluster-reset-restore-path") == "")
	if err != nil {
		return err
	}
	if c.etcd, err = c.ownEtcd(); err != nil {
		return err
	}
	info("Starting etcd for new cluster, cluster-reset=true")
	one, err := c.memberProgram("", "", true)
	if err != nil {
		return err
	}
	one.brief = true
	if err := one.start(part("etcd"), one.arguments...); err != nil {
		return err
	}
	defer one.finish()
	if err := answers(ctx, c.etcd); err != nil {
		return err
	}
	members, err := c.etcd.members(ctx)
	if err != nil {
		return err
	}
	if len(members) != 1 {
		return errors.New("failed to update peer url: etcd still has more than one member")
	}
	if err := c.etcd.updatePeer(ctx, members[0].ID, c.peerURL()); err != nil {
		return err
	}
	return patientlyFor(ctx, time.Minute, func() error {
		members, err := c.etcd.members(ctx)
		if err == nil && members[0].Name != name {
			err = fmt.Errorf("the member is still called %s, expect: %s", members[0].Name, name)
		}
		return err
	})
}

func patientlyFor(ctx context.Context, duration time.Duration, step func() error) error {
	limited, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var last error
	patiently(limited, 500*time.Millisecond, func() error { last = step(); return last })
	return last
}
