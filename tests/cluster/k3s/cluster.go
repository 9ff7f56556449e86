package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cluster is one server: its settings and what it knows of the cluster. Its folder has the layout of K3s.
type cluster struct {
	*settings
	folder   string
	nodeName string
	address  string
	// Of the server and of agents, as they have been given; passwd has those that are in force.
	token, agentToken string
	// Whether the server keeps its data in an etcd of its own, as a member of the cluster's.
	managed bool
	join    *access
	etcd    *etcdClient
	// Where the other members answer.
	others []string
	api    *apiClient
	ready  ready
	names  nodeNames
	// Whether the node says which configuration of encryption the server has started with.
	announced bool
}

// ready has channels that are closed as soon as something works.
type ready struct{ runtime, etcd, api chan struct{} }

func newCluster(s *settings) (*cluster, error) {
	c := &cluster{settings: s, folder: filepath.Join(s.text("data-dir"), "server")}
	c.ready = ready{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	var err error
	if c.nodeName, c.address, err = identity(s); err != nil {
		return nil, err
	}
	if c.token, err = secretOf(s, "token"); err != nil {
		return nil, err
	}
	c.agentToken, err = secretOf(s, "agent-token")
	return c, err
}

// secretOf is a token, from its file if one is named.
func secretOf(s *settings, name string) (string, error) {
	if path := s.text(name + "-file"); path != "" {
		content, err := os.ReadFile(path)
		return strings.TrimSpace(string(content)), err
	}
	return s.text(name), nil
}

// identity is the name and the first address of the node.
func identity(s *settings) (string, string, error) {
	name := strings.ToLower(s.text("node-name"))
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", "", err
		}
		name = strings.ToLower(host)
	}
	if s.on("with-node-id") {
		id, err := ensureNodeID()
		if err != nil {
			return "", "", err
		}
		name += "-" + id
	}
	if given := s.list("node-ip"); len(given) > 0 {
		if net.ParseIP(given[0]) == nil {
			return "", "", fmt.Errorf("invalid ip format '%s'", given[0])
		}
		return name, given[0], nil
	}
	address, err := hostAddress()
	return name, address, err
}

func ensureNodeID() (string, error) {
	path := filepath.Join(nodeFolder, "id")
	if content, err := os.ReadFile(path); err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	id := random(4)
	return id, store(path, []byte(id+"\n"), 0o644)
}

// hostAddress is that of the interface with the default route, without which K3s does not start.
func hostAddress() (string, error) {
	content, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(content), "\n")[1:] {
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[1] != "00000000" || fields[7] != "00000000" {
			continue
		}
		device, err := net.InterfaceByName(fields[0])
		if err != nil {
			return "", err
		}
		addresses, err := device.Addrs()
		if err != nil {
			return "", err
		}
		for _, one := range addresses {
			if network, ok := one.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
				return network.IP.String(), nil
			}
		}
	}
	return "", fmt.Errorf("unable to select an IP from default routes.")
}

// hostAddress6 is the same of IPv6, "" without such a route.
func hostAddress6() string {
	content, _ := os.ReadFile("/proc/net/ipv6_route")
	device, err := net.InterfaceByName(defaultDevice6(string(content)))
	if err != nil {
		return ""
	}
	addresses, _ := device.Addrs()
	for _, one := range addresses {
		if network, ok := one.(*net.IPNet); ok && network.IP.To4() == nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return ""
}

// defaultDevice6 is the interface with the default route of IPv6, "" if there is none. The kernel has one of its own that leads nowhere, on lo.
func defaultDevice6(routes string) string {
	for _, line := range strings.Split(routes, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 10 && strings.Trim(fields[0]+fields[1], "0") == "" && fields[9] != "lo" {
			return fields[9]
		}
	}
	return ""
}

// path is that of a file in the folder of servers.
func (c *cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.folder}, parts...)...)
}

func (c *cluster) ca(name string) authority { return authority(c.path("tls", name)) }

func (c *cluster) port() int {
	port, _ := strconv.Atoi(c.text("https-listen-port"))
	return port
}

// loopback is where the API server itself listens; the port of the supervisor hands requests over to it.
func (c *cluster) loopback() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port()+1) }

func (c *cluster) supervisor() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port()) }

func (c *cluster) clusterDNS() []string {
	if given := c.list("cluster-dns"); len(given) > 0 {
		return given
	}
	var addresses []string
	for _, network := range c.list("service-cidr") {
		addresses = append(addresses, indexed(network, 10))
	}
	return addresses
}

// indexed is an address of a network by its number.
func indexed(network string, number byte) string {
	_, parsed, err := net.ParseCIDR(network)
	if err != nil {
		return ""
	}
	address := append(net.IP{}, parsed.IP...)
	address[len(address)-1] += number
	return address.String()
}

// sans are the names and addresses of the certificates of servers.
func (c *cluster) sans() []string {
	sans := c.list("tls-san")
	sans = append(sans, "127.0.0.1", "::1", "localhost", c.nodeName, c.address, c.advertised())
	for _, network := range c.list("service-cidr")[:1] {
		sans = append(sans, indexed(network, 1))
	}
	return sans
}

func (c *cluster) advertised() string {
	if given := c.text("advertise-address"); given != "" {
		return given
	}
	if given := c.list("node-external-ip"); len(given) > 0 {
		return given[0]
	}
	return c.address
}

func (c *cluster) disabled(component string) bool {
	for _, one := range c.list("disable") {
		if one == component {
			return true
		}
	}
	return false
}

// check is what K3s refuses before it does anything.
func (c *cluster) check() error {
	if c.text("cluster-reset-restore-path") != "" && !c.on("cluster-reset") {
		return fmt.Errorf("invalid flag use; --cluster-reset required with --cluster-reset-restore-path")
	}
	if c.on("disable-etcd") && c.text("server") == "" {
		return fmt.Errorf("invalid flag use; --server is required with --disable-etcd")
	}
	for _, name := range []string{"cluster-cidr", "service-cidr"} {
		for _, network := range c.list(name) {
			if _, _, err := net.ParseCIDR(network); err != nil {
				return wrap(err, fmt.Sprintf("invalid %s %s", name, network))
			}
		}
	}
	for _, address := range c.list("cluster-dns") {
		if net.ParseIP(address) == nil {
			return fmt.Errorf("invalid cluster-dns address %s", address)
		}
	}
	if port := c.text("advertise-port"); port != "" && port != c.text("https-listen-port") {
		return fmt.Errorf("the stand-in cannot advertise another port than that it listens on")
	}
	switch mode := c.text("egress-selector-mode"); mode {
	case "agent", "cluster", "pod", "disabled":
	default:
		return fmt.Errorf("invalid egress-selector-mode %s", mode)
	}
	if !c.on("cluster-reset") {
		return nil
	}
	if c.text("server") != "" {
		return fmt.Errorf("cannot perform cluster-reset while server URL is set - remove server from configuration before resetting")
	}
	if c.text("cluster-reset-restore-path") != "" && c.token == "" && !exists(c.path("token")) {
		return fmt.Errorf("%s does not exist, please pass --token to complete the restoration", c.path("token"))
	}
	return nil
}
