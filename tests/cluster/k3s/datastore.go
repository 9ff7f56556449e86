package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func (c *cluster) sqliteFile() string { return c.path("db", "state.db") }

// privateFolder is where a server with SQLite really keeps its data: the stand-in has no SQLite, but an etcd that nobody else sees.
func (c *cluster) privateFolder() string { return c.sqliteFile() + ".d" }

// bootstrapUnmanaged starts or finds the datastore of a server without a member, and takes from it what servers share.
func (c *cluster) bootstrapUnmanaged(ctx context.Context, external string) error {
	var err error
	if external != "" {
		err = c.useExternal(external)
	} else {
		err = c.startPrivate(ctx)
	}
	if err != nil {
		return err
	}
	close(c.ready.etcd)
	_, err = c.fromDatastore(ctx, c.etcd)
	return err
}

func (c *cluster) useExternal(endpoint string) error {
	first, _, _ := strings.Cut(endpoint, ",")
	if !strings.HasPrefix(first, "http://") && !strings.HasPrefix(first, "https://") {
		return fmt.Errorf("building kine: the stand-in has no driver for the datastore %s, only for etcd", strings.SplitN(first, ":", 2)[0])
	}
	if strings.HasPrefix(first, "http://") {
		c.etcd = newEtcdClient(first, nil)
		return nil
	}
	setup, err := mutual(c.text("datastore-cafile"), c.text("datastore-certfile"), c.text("datastore-keyfile"))
	if err != nil {
		return err
	}
	c.etcd = newEtcdClient(first, setup)
	return nil
}

func (c *cluster) startPrivate(ctx context.Context) error {
	if err := store(c.sqliteFile(), []byte("The data are in the folder beside this file.\n"), 0o644); err != nil {
		return err
	}
	one := &program{name: "datastore", orderly: true}
	if err := one.start(part("etcd"), localEtcd("private", c.privateFolder(), privateClient, privatePeer)...); err != nil {
		return err
	}
	c.etcd = newEtcdClient(privateClient, nil)
	return answers(ctx, c.etcd)
}

func localEtcd(name, folder, client, peer string, more ...string) []string {
	arguments := []string{
		"--name=" + name, "--data-dir=" + folder, "--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + name + "=" + peer, "--logger=zap", "--log-outputs=stderr", "--log-level=panic",
	}
	return append(arguments, more...)
}

func answers(ctx context.Context, etcd *etcdClient) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last error
	if patiently(ctx, 100*time.Millisecond, func() error { _, last = etcd.members(ctx); return last }) {
		return nil
	}
	return last
}

// withCopy runs an etcd on a copy of a folder as long as a step needs it.
func (c *cluster) withCopy(ctx context.Context, folder string, step func(*etcdClient) error) error {
	copied := folder + "-tmp"
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	if output, err := exec.CommandContext(ctx, "cp", "-a", folder, copied).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	one := &program{name: "temporary etcd", orderly: true, brief: true}
	if err := one.start(part("etcd"), localEtcd(filepath.Base(folder), copied, briefClient, briefPeer, "--force-new-cluster")...); err != nil {
		return err
	}
	defer one.finish()
	etcd := newEtcdClient(briefClient, nil)
	if err := answers(ctx, etcd); err != nil {
		return err
	}
	return step(etcd)
}

// migrate moves the objects of a server that had SQLite into its new member.
func (c *cluster) migrate(ctx context.Context) error {
	if !exists(c.sqliteFile()) {
		return nil
	}
	info("Migrating content from sqlite to etcd")
	if err := answers(ctx, c.etcd); err != nil {
		return err
	}
	err := c.withCopy(ctx, c.privateFolder(), func(old *etcdClient) error {
		return old.copied(ctx, "/registry/", func(one keyValue) error {
			info("Migrating etcd key %s", one.Key)
			return c.etcd.put(ctx, string(one.Key), one.Value)
		})
	})
	if err != nil {
		return fmt.Errorf("failed to migrate content from sqlite to etcd: %w", err)
	}
	if err := os.RemoveAll(c.privateFolder() + ".migrated"); err != nil {
		return err
	}
	return errors.Join(os.Rename(c.privateFolder(), c.privateFolder()+".migrated"), os.Rename(c.sqliteFile(), c.sqliteFile()+".migrated"))
}
