package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// The format is that of logrus for a writer that is no terminal, which operators and the role search for causes.
func logAt(level, format string, values ...any) {
	message := fmt.Sprintf(format, values...)
	fmt.Fprintf(os.Stderr, "time=%q level=%s msg=%s\n", time.Now().UTC().Format(time.RFC3339), level, strconv.Quote(message))
}

func info(format string, values ...any)    { logAt("info", format, values...) }
func warn(format string, values ...any)    { logAt("warning", format, values...) }
func problem(format string, values ...any) { logAt("error", format, values...) }

// fatal ends the process, and with it all programs that it has started.
func fatal(format string, values ...any) {
	logAt("fatal", format, values...)
	os.Exit(1)
}

func failed(err error) {
	if err != nil {
		fatal("Error: %v", err)
	}
}

// wrap is the way in which K3s' errors name the step that failed.
func wrap(err error, step string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}
