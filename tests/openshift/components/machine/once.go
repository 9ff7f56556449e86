package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// What differs between two messages about the same thing: names of requests for certificates, own ports of connections, and times.
var varying = regexp.MustCompile(`csr-[a-z0-9]{5}|[^ ]+->|\b[0-9.]+m?s\b|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// once prints each message once until it is forgotten: those of the libraries are repeated as long as the API is away.
type once struct {
	mutex sync.Mutex
	out   io.Writer
	said  map[string]bool
}

func newOnce(out io.Writer) *once { return &once{out: out, said: map[string]bool{}} }

func (o *once) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (o *once) Handle(_ context.Context, record slog.Record) error {
	line := strings.Builder{}
	fmt.Fprintf(&line, "machine: %s", record.Message)
	record.Attrs(func(one slog.Attr) bool {
		if one.Key == "logger" {
			return true
		}
		fmt.Fprintf(&line, " %s=%q", one.Key, fmt.Sprint(one.Value.Any()))
		return true
	})
	o.mutex.Lock()
	defer o.mutex.Unlock()
	kind := varying.ReplaceAllString(line.String(), "*")
	if o.said[kind] {
		return nil
	}
	o.said[kind] = true
	_, err := fmt.Fprintln(o.out, line.String())
	return err
}

// forget lets messages be printed again.
func (o *once) forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	clear(o.said)
}

// WithAttrs leaves out what libraries say with each of their messages.
func (o *once) WithAttrs([]slog.Attr) slog.Handler { return o }

func (o *once) WithGroup(string) slog.Handler { return o }
