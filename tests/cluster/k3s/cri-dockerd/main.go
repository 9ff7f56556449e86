// Command cri-dockerd is what K3s' binary contains for Docker, from the sources that K3s has (go.mod of K3s).
package main

import (
	"fmt"
	"os"

	"github.com/Mirantis/cri-dockerd/cmd"
	"k8s.io/apiserver/pkg/server"
)

func main() {
	if err := cmd.NewDockerCRICommand(server.SetupSignalHandler()).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
