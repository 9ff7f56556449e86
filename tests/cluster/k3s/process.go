package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is one that the process has started, and which does not outlive it: what K3s runs inside of itself, and containerd, which the kernel ends with it.
// The shims of pods are not among them, so pods outlive a restart.
type program struct {
	name string
	// Whether it is to end in an orderly way, as etcd is, when the process ends.
	orderly bool
	// Whether it is needed for a step only.
	brief bool
	log   string
	// For programs that are described before they are started.
	arguments []string
	// Called before an unexpected end ends the process.
	onEnd   func()
	command *exec.Cmd
	ended   chan struct{}
}

var (
	programsLock sync.Mutex
	programs     []*program
	stopping     bool
	// A thread that never ends: the kernel ends a child with the thread that has started it.
	starts = make(chan func())
)

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}

// start runs a program until the process ends. If it ends earlier, the process does, too.
func (p *program) start(path string, arguments ...string) error {
	command := exec.Command(path, arguments...)
	command.Env = withoutNotification()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if p.log != "" {
		if err := os.MkdirAll(filepath.Dir(p.log), 0o700); err != nil {
			return err
		}
		file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		command.Stdout, command.Stderr = file, file
	}
	info("Running %s %s", p.name, strings.Join(arguments, " "))
	begun := make(chan error)
	starts <- func() { begun <- command.Start() }
	if err := <-begun; err != nil {
		return wrap(err, "failed to start "+p.name)
	}
	p.command, p.ended = command, make(chan struct{})
	programsLock.Lock()
	programs = append(programs, p)
	programsLock.Unlock()
	go p.watch()
	return nil
}

func (p *program) watch() {
	err := p.command.Wait()
	programsLock.Lock()
	expected := stopping
	for number, other := range programs {
		if other == p {
			programs = append(programs[:number:number], programs[number+1:]...)
			break
		}
	}
	programsLock.Unlock()
	close(p.ended)
	if !expected && !p.brief {
		if p.onEnd != nil {
			p.onEnd()
		}
		fatal("%s exited: %v", p.name, err)
	}
}

// finish ends a program that is needed for a step only.
func (p *program) finish() {
	<-p.end(syscall.SIGTERM)
}

func (p *program) end(signal os.Signal) <-chan struct{} {
	_ = p.command.Process.Signal(signal)
	return p.ended
}

// stopAll ends programs in reverse order, those that need it in an orderly way.
func stopAll() {
	programsLock.Lock()
	stopping = true
	running := append([]*program{}, programs...)
	programsLock.Unlock()
	limit := time.After(20 * time.Second)
	for number := len(running) - 1; number >= 0; number-- {
		signal := os.Signal(syscall.SIGKILL)
		if running[number].orderly {
			signal = syscall.SIGTERM
		}
		select {
		case <-running[number].end(signal):
		case <-limit:
			return
		}
	}
}

func withoutNotification() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "NOTIFY_SOCKET=") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// patiently repeats a step each second until it succeeds. Whether it did before the context ended.
func patiently(ctx context.Context, interval time.Duration, step func() error) bool {
	for {
		if err := step(); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(interval):
		}
	}
}

// componentArguments joins defaults with those that the user has set: these replace a default, or are added after it with a plus sign and before it with
// a minus sign at the end of the name.
func componentArguments(defaults map[string]string, given []string) []string {
	values := map[string][]string{}
	for name, value := range defaults {
		values[name] = []string{value}
	}
	touched := map[string]bool{}
	for _, one := range given {
		name, value, found := strings.Cut(strings.TrimPrefix(one, "--"), "=")
		if !found {
			value = "true"
		}
		clean := strings.TrimRight(name, "-+")
		switch {
		case strings.HasSuffix(name, "+"):
			values[clean] = append(values[clean], value)
		case strings.HasSuffix(name, "-"):
			values[clean] = append([]string{value}, values[clean]...)
		case touched[clean]:
			values[clean] = append(values[clean], value)
		default:
			values[clean] = []string{value}
		}
		touched[clean] = true
	}
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			arguments = append(arguments, fmt.Sprintf("--%s=%s", name, value))
		}
	}
	return arguments
}
