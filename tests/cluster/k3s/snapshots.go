package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"
)

const snapshotOptions = `
debug flag
config,c text
log,l text
data-dir,d text =/var/lib/rancher/k3s
node-name text K3S_NODE_NAME
etcd-server,s text =https://127.0.0.1:6443
etcd-token,t text K3S_TOKEN
name text =on-demand
dir,etcd-snapshot-dir text
snapshot-compress,etcd-snapshot-compress flag
snapshot-retention,etcd-snapshot-retention text =5
output,o text
s3,etcd-s3 flag
etcd-s3-endpoint text
etcd-s3-endpoint-ca text
etcd-s3-skip-ssl-verify flag
etcd-s3-access-key text AWS_ACCESS_KEY_ID
etcd-s3-secret-key text AWS_SECRET_ACCESS_KEY
etcd-s3-bucket text
etcd-s3-region text
etcd-s3-folder text
etcd-s3-proxy text
etcd-s3-config-secret text
etcd-s3-insecure flag
etcd-s3-timeout text
`

// snapshotRequest of `k3s etcd-snapshot` to the server, which takes them.
type snapshotRequest struct {
	Operation string   `json:"operation"`
	Names     []string `json:"name,omitempty"`
	Folder    string   `json:"dir,omitempty"`
	Compress  bool     `json:"compress,omitempty"`
	Retention *int     `json:"retention,omitempty"`
	// By the names of options.
	S3 map[string]string `json:"s3,omitempty"`
}

type snapshotFile struct {
	Name      string    `json:"name" yaml:"name"`
	Location  string    `json:"location" yaml:"location"`
	NodeName  string    `json:"nodeName" yaml:"nodeName"`
	CreatedAt time.Time `json:"createdAt" yaml:"createdAt"`
	Size      int64     `json:"size" yaml:"size"`
	Status    string    `json:"status" yaml:"status"`
}

type snapshotResult struct {
	Created []string       `json:"created,omitempty"`
	Deleted []string       `json:"deleted,omitempty"`
	Files   []snapshotFile `json:"files,omitempty"`
}

// manageSnapshots is `k3s etcd-snapshot`.
func manageSnapshots(arguments []string) error {
	action, rest := "save", arguments
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		action, rest = arguments[0], arguments[1:]
	}
	switch action {
	case "save", "delete", "ls", "list", "l", "prune":
	default:
		return noTopic(action)
	}
	s, err := commandSettings("etcd-snapshot", optionsOf(snapshotOptions), rest)
	if err != nil {
		return err
	}
	asked := snapshotRequest{Operation: action, Folder: s.text("dir"), Compress: s.on("snapshot-compress"), S3: s3Settings(s)}
	if asked.S3 != nil && action != "save" {
		return errors.New("the stand-in has no S3")
	}
	switch action {
	case "save":
		if len(s.rest) > 0 {
			return errors.New("this command does not take any arguments")
		}
		asked.Names = []string{s.text("name")}
	case "delete":
		if len(s.rest) == 0 {
			return errors.New("no snapshots given for removal")
		}
		asked.Names = s.rest
	case "prune":
		asked.Names = []string{s.text("name")}
		retention, err := strconv.Atoi(s.text("snapshot-retention"))
		if err != nil {
			return err
		}
		asked.Retention = &retention
	default:
		asked.Operation = "list"
	}
	return askForSnapshots(s, asked)
}

func askForSnapshots(s *settings, asked snapshotRequest) error {
	token := s.text("etcd-token")
	if token == "" {
		content, err := os.ReadFile(filepath.Join(s.text("data-dir"), "server", "token"))
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(content))
	}
	server, err := validated(s.text("etcd-server"), token, "server")
	if err != nil {
		return err
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	answer, err := server.send(http.MethodPost, "/db/snapshot", body, nil, 2*time.Minute)
	if err != nil {
		return wrap(err, "see server log for details")
	}
	var result snapshotResult
	if err := json.Unmarshal(answer, &result); err != nil {
		return err
	}
	for _, name := range result.Created {
		info("Snapshot %s saved.", name)
	}
	for _, name := range result.Deleted {
		info("Snapshot %s deleted.", name)
	}
	if asked.Operation == "list" {
		return printSnapshots(result.Files, s.text("output"))
	}
	return nil
}

func printSnapshots(files []snapshotFile, format string) error {
	switch format {
	case "json":
		return json.NewEncoder(os.Stdout).Encode(object{"kind": "List", "apiVersion": "v1", "items": files})
	case "yaml":
		return yaml.NewEncoder(os.Stdout).Encode(files)
	case "":
	default:
		return errors.New("invalid output format: " + format)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	defer out.Flush()
	fmt.Fprint(out, "Name\tLocation\tSize\tCreated\n")
	for _, one := range files {
		fmt.Fprintf(out, "%s\t%s\t%d\t%s\n", one.Name, one.Location, one.Size, one.CreatedAt.Format(time.RFC3339))
	}
	return nil
}

func (c *cluster) handleSnapshots(writer http.ResponseWriter, asked *http.Request, _ *identified) {
	var wanted snapshotRequest
	if err := json.NewDecoder(asked.Body).Decode(&wanted); err != nil {
		sendError(writer, asked, err, http.StatusBadRequest)
		return
	}
	if !c.managed {
		sendError(writer, asked, errors.New("unable to perform etcd snapshot on non-etcd system"), http.StatusBadRequest)
		return
	}
	result, err := c.snapshots(asked.Context(), wanted)
	if err != nil {
		sendHidden(writer, asked, err, "etcd-snapshot", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(result)
}

func (c *cluster) snapshots(ctx context.Context, wanted snapshotRequest) (*snapshotResult, error) {
	folder, err := c.snapshotFolder(wanted.Folder)
	if err != nil {
		return nil, wrap(err, "failed to get etcd-snapshot-dir")
	}
	result := &snapshotResult{}
	switch wanted.Operation {
	case "save":
		name, err := c.takeSnapshot(ctx, folder, wanted.Names[0], wanted.Compress || c.on("etcd-snapshot-compress"))
		if err == nil {
			c.upload(ctx, wanted.S3, name)
		}
		result.Created = []string{name}
		return result, err
	case "delete":
		for _, name := range wanted.Names {
			if err := os.Remove(filepath.Join(folder, filepath.Base(name))); err != nil {
				return nil, err
			}
			result.Deleted = append(result.Deleted, name)
		}
		return result, nil
	case "prune":
		result.Deleted, err = prune(folder, wanted.Names[0], *wanted.Retention)
		return result, err
	}
	result.Files, err = c.listSnapshots(folder)
	return result, err
}

// snapshotFolder is made only if it is the usual one.
func (c *cluster) snapshotFolder(given string) (string, error) {
	usual := c.path("db", "snapshots")
	if given == "" {
		given = c.text("etcd-snapshot-dir")
	}
	if given == "" || given == usual {
		return usual, os.MkdirAll(usual, 0o700)
	}
	found, err := os.Stat(given)
	if err == nil && !found.IsDir() {
		err = fmt.Errorf("%s is not a directory", given)
	}
	return given, err
}

func (c *cluster) takeSnapshot(ctx context.Context, folder, base string, compress bool) (string, error) {
	name := fmt.Sprintf("%s-%s-%d", base, c.nodeName, time.Now().Unix())
	path := filepath.Join(folder, name)
	info("Saving etcd snapshot to %s", path)
	if err := c.etcd.snapshot(ctx, path); err != nil {
		return "", wrap(err, "Failed to take etcd snapshot")
	}
	if !compress {
		return name, nil
	}
	if err := zipped(path); err != nil {
		return "", wrap(err, "failed to compress snapshot")
	}
	return name + ".zip", os.Remove(path)
}

func zipped(path string) error {
	out, err := os.OpenFile(path+".zip", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	packed := zip.NewWriter(out)
	entry, err := packed.Create(filepath.Base(path))
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(entry, in); err != nil {
		return err
	}
	return packed.Close()
}

// unzipped is the snapshot in an archive.
func unzipped(path, folder string) (string, error) {
	packed, err := zip.OpenReader(path)
	if err != nil {
		return "", err
	}
	defer packed.Close()
	if len(packed.File) == 0 {
		return "", errors.New("the archive has no snapshot: " + path)
	}
	in, err := packed.File[0].Open()
	if err != nil {
		return "", err
	}
	defer in.Close()
	target := filepath.Join(folder, filepath.Base(packed.File[0].Name))
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer out.Close()
	_, err = io.Copy(out, in)
	return target, err
}

// taken is when a snapshot was taken, by its name if possible.
func taken(entry os.FileInfo) time.Time {
	name := strings.TrimSuffix(entry.Name(), ".zip")
	if seconds, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64); err == nil {
		return time.Unix(seconds, 0)
	}
	return entry.ModTime()
}

func (c *cluster) listSnapshots(folder string) ([]snapshotFile, error) {
	entries, err := snapshotsIn(folder, "")
	if err != nil {
		return nil, err
	}
	var files []snapshotFile
	for _, entry := range entries {
		location := &url.URL{Scheme: "file", Path: filepath.Join(folder, entry.Name())}
		files = append(files, snapshotFile{entry.Name(), location.String(), c.nodeName, taken(entry), entry.Size(), "successful"})
	}
	return files, nil
}

// snapshotsIn are those whose name begins so, the newest first.
func snapshotsIn(folder, base string) ([]os.FileInfo, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []os.FileInfo
	for _, entry := range entries {
		one, err := entry.Info()
		if err == nil && !entry.IsDir() && strings.HasPrefix(entry.Name(), base) && !strings.HasSuffix(entry.Name(), ".part") {
			found = append(found, one)
		}
	}
	sort.Slice(found, func(one, other int) bool { return taken(found[one]).After(taken(found[other])) })
	return found, nil
}

// prune deletes the oldest snapshots in excess of a number.
func prune(folder, base string, retention int) ([]string, error) {
	if retention < 1 {
		return nil, nil
	}
	found, err := snapshotsIn(folder, base)
	if err != nil || len(found) <= retention {
		return nil, err
	}
	info("Applying snapshot retention=%d to local snapshots with prefix %s in %s", retention, base, folder)
	var deleted []string
	for _, one := range found[retention:] {
		if err := os.Remove(filepath.Join(folder, one.Name())); err != nil {
			return deleted, err
		}
		deleted = append(deleted, one.Name())
	}
	return deleted, nil
}
