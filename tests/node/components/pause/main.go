// Command pause holds a pod's namespaces: it waits for the signal to terminate the pod, and reaps orphaned processes.
// The pause program of Kubernetes is written in C and published only in an image.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// As that one does (build/pause/linux/pause.c). kubeadm runs it so to see whether a Job completes.
	if len(os.Args) > 1 && os.Args[1] == "-v" {
		fmt.Println("pause")
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); child <= 0 || err != nil {
				break
			}
		}
	}
}
