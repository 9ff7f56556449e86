package main

import (
	"encoding/json"
	"errors"
	"net"
	"reflect"
)

// critical has the settings that all servers share, under the names that the supervisor gives them; flag is that of the setting.
type critical struct {
	ClusterDNSs           []string `flag:"cluster-dns"`
	ClusterIPRanges       []string `flag:"cluster-cidr"`
	ClusterDomain         string   `flag:"cluster-domain"`
	DisableCCM            bool     `flag:"disable-cloud-controller"`
	DisableHelmController bool     `flag:"disable-helm-controller"`
	DisableNPC            bool     `flag:"disable-network-policy"`
	DisableServiceLB      bool     `flag:"disable-service-lb"`
	EncryptSecrets        bool     `flag:"secrets-encryption"`
	EmbeddedRegistry      bool     `flag:"embedded-registry"`
	FlannelBackend        string   `flag:"flannel-backend"`
	FlannelIPv6Masq       bool     `flag:"flannel-ipv6-masq"`
	FlannelExternalIP     bool     `flag:"flannel-external-ip"`
	EgressSelectorMode    string   `flag:"egress-selector-mode"`
	ServiceIPRanges       []string `flag:"service-cidr"`
	SupervisorMetrics     bool     `flag:"supervisor-metrics"`
}

// shared settings of agents, too.
type agentSettings struct {
	critical
	HTTPSPort             int
	SupervisorPort        int
	DisableKubeProxy      bool
	SystemDefaultRegistry string
}

func (c *cluster) critical() critical {
	return critical{
		ClusterDNSs:           c.clusterDNS(),
		ClusterIPRanges:       c.networks("cluster-cidr"),
		ClusterDomain:         c.text("cluster-domain"),
		DisableCCM:            c.on("disable-cloud-controller"),
		DisableHelmController: c.on("disable-helm-controller"),
		DisableNPC:            c.on("disable-network-policy"),
		DisableServiceLB:      c.disabled("servicelb"),
		EncryptSecrets:        c.on("secrets-encryption"),
		EmbeddedRegistry:      c.on("embedded-registry"),
		FlannelBackend:        c.text("flannel-backend"),
		FlannelIPv6Masq:       c.on("flannel-ipv6-masq"),
		FlannelExternalIP:     c.on("flannel-external-ip"),
		EgressSelectorMode:    c.text("egress-selector-mode"),
		ServiceIPRanges:       c.networks("service-cidr"),
		SupervisorMetrics:     c.on("supervisor-metrics"),
	}
}

func (c *cluster) networks(name string) []string {
	var networks []string
	for _, given := range c.list(name) {
		if _, parsed, err := net.ParseCIDR(given); err == nil {
			networks = append(networks, parsed.String())
		}
	}
	return networks
}

// compare refuses to join servers with other settings, and says which differ.
func (c *cluster) compare() error {
	token := c.token
	if c.agentToken != "" {
		token = c.agentToken
	}
	agent, err := validated(c.text("server"), token, "node")
	if err != nil {
		return err
	}
	answer, err := agent.get("/v1-k3s/config")
	if err != nil {
		return err
	}
	var theirs agentSettings
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return err
	}
	own := reflect.ValueOf(c.critical())
	other := reflect.ValueOf(theirs.critical)
	differ := false
	for number := range own.NumField() {
		if !reflect.DeepEqual(own.Field(number).Interface(), other.Field(number).Interface()) {
			warn("critical configuration mismatched: %s", own.Type().Field(number).Tag.Get("flag"))
			differ = true
		}
	}
	if differ {
		return errors.New("critical configuration value mismatch between servers")
	}
	return nil
}
