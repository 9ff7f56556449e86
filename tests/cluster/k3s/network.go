package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
)

// network gives pods a bridge, and the machine routes to those of other nodes: what flannel does with its backend host-gw, whatever backend is set, since
// machines of the tests share a network. Whether the node has a part of the pods' network already.
func (a *agent) network(ctx context.Context, node object) bool {
	networks := podNetworks(node)
	if a.supplied.FlannelBackend == "none" {
		return true
	}
	if len(networks) == 0 {
		return false
	}
	info("Flannel found PodCIDR assigned for node %s", a.name)
	if err := a.writeNetwork(networks); err != nil {
		problem("flannel exited: %v", err)
		return false
	}
	if err := a.writeSubnet(networks); err != nil {
		problem("flannel exited: %v", err)
		return false
	}
	if a.on("docker") {
		a.forward(a.supplied.ClusterIPRanges)
	}
	if err := a.api.condition(ctx, a.name, node, "NetworkUnavailable", "False", "FlannelIsUp", "Flannel is running on this node"); err != nil {
		problem("Failed to set the condition of the network: %v", err)
	}
	annotations := object{
		"flannel.alpha.coreos.com/backend-type": a.supplied.FlannelBackend, "flannel.alpha.coreos.com/kube-subnet-manager": "true",
		"flannel.alpha.coreos.com/public-ip": a.address,
	}
	if own := a.addresses(); len(own) > 1 {
		annotations["flannel.alpha.coreos.com/public-ipv6"] = own[1]
	}
	if err := a.api.patch(ctx, "/api/v1/nodes/"+a.name, object{"metadata": object{"annotations": annotations}}); err != nil {
		problem("flannel failed to set address annotations: %v", err)
	}
	go a.nodes.watch(ctx, "/api/v1/nodes", a.route)
	return true
}

// forward accepts what pods send and get, as flannel does: Docker drops what it does not know itself.
func (a *agent) forward(networks []string) {
	for _, network := range networks {
		program := "iptables"
		if strings.Contains(network, ":") {
			program = "ip6tables"
		}
		// The chain and the rules may be there from a start before.
		_ = exec.Command(program, "--wait", "--new-chain", "FLANNEL-FWD").Run()
		for _, rule := range [][]string{{"FORWARD", "--jump", "FLANNEL-FWD"}, {"FLANNEL-FWD", "--source", network, "--jump", "ACCEPT"},
			{"FLANNEL-FWD", "--destination", network, "--jump", "ACCEPT"}} {
			if exec.Command(program, append([]string{"--wait", "--check"}, rule...)...).Run() == nil {
				continue
			}
			if output, err := exec.Command(program, append([]string{"--wait", "--append"}, rule...)...).CombinedOutput(); err != nil {
				problem("Failed to ensure iptables rules: %v: %s", err, output)
			}
		}
	}
}

// writeSubnet says which networks pods have, as flannel does (WriteSubnetFile in pkg/agent/flannel of K3s).
func (a *agent) writeSubnet(networks []string) error {
	lines := ""
	for number, network := range networks {
		family := ""
		if strings.Contains(network, ":") {
			family = "IPV6_"
		}
		if number < len(a.supplied.ClusterIPRanges) {
			lines += fmt.Sprintf("FLANNEL_%sNETWORK=%s\n", family, a.supplied.ClusterIPRanges[number])
		}
		lines += fmt.Sprintf("FLANNEL_%sSUBNET=%s\n", family, network)
	}
	return store("/run/flannel/subnet.env", []byte(lines+"FLANNEL_MTU=1500\nFLANNEL_IPMASQ=true\n"), 0o644)
}

func podNetworks(node object) []string {
	var networks []string
	given, _ := at(node, "spec", "podCIDRs").([]any)
	for _, network := range given {
		networks = append(networks, fmt.Sprint(network))
	}
	return networks
}

func (a *agent) cniFolder() string { return a.path("etc", "cni", "net.d") }

func (a *agent) writeNetwork(networks []string) error {
	ranges := [][]object{}
	routes := []object{}
	for _, network := range networks {
		ranges = append(ranges, []object{{"subnet": network}})
		destination := "0.0.0.0/0"
		if strings.Contains(network, ":") {
			destination = "::/0"
		}
		routes = append(routes, object{"dst": destination})
	}
	bridge := object{
		"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
		"ipam": object{"type": "host-local", "ranges": ranges, "routes": routes},
	}
	portmap := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	content, err := json.MarshalIndent(object{"name": "cbr0", "cniVersion": "1.0.0", "plugins": []object{bridge, portmap}}, "", "  ")
	if err != nil {
		return err
	}
	return store(filepath.Join(a.cniFolder(), "10-flannel.conflist"), content, 0o600)
}

// route leads to the pods of another node, or no longer.
func (a *agent) route(deleted bool, node object) {
	name := field(node, "metadata", "name")
	if name == a.name {
		return
	}
	for _, network := range podNetworks(node) {
		annotation := "public-ip"
		if strings.Contains(network, ":") {
			annotation = "public-ipv6"
		}
		next := field(node, "metadata", "annotations", "flannel.alpha.coreos.com/"+annotation)
		action := []string{"route", "replace", network, "via", next}
		if deleted {
			action = []string{"route", "del", network}
		} else if net.ParseIP(next) == nil {
			continue
		}
		if output, err := exec.Command("ip", action...).CombinedOutput(); err != nil && !deleted {
			problem("failed to add route to pods of %s: %v: %s", name, err, output)
		}
	}
}
