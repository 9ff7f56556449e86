package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	memberAnnotation        = "etcd.k3s.cattle.io/node-name"
	memberAddressAnnotation = "etcd.k3s.cattle.io/node-address"
	removeAnnotation        = "etcd.k3s.cattle.io/remove"
	removedAnnotation       = "etcd.k3s.cattle.io/removed-node-name"
	controlPlaneLabel       = "node-role.kubernetes.io/control-plane"
	etcdLabel               = "node-role.kubernetes.io/etcd"
	uninitialized           = "node.cloudprovider.kubernetes.io/uninitialized"
)

// The classes exist on each cluster, whether or not a node has the runtime.
var runtimeClasses = []string{
	"nvidia", "nvidia-experimental", "nvidia-cdi", "crun", "lunatic", "slight", "spin", "wws", "wasmedge", "wasmer", "wasmtime",
}

// controllers run on each server. What K3s does from one server at a time is done here so that a second one changes nothing.
func (c *cluster) controllers(ctx context.Context) {
	for _, deploy := range []func(context.Context) error{c.deployClasses, c.deployRoles, c.deployDNSConfig} {
		patiently(ctx, time.Second, func() error {
			err := deploy(ctx)
			if err != nil {
				warn("Failed to process addon: %v", err)
			}
			return err
		})
	}
	c.api.watch(ctx, "/api/v1/nodes", func(deleted bool, node object) {
		name := field(node, "metadata", "name")
		if deleted {
			c.nodeGone(ctx, name, node)
			return
		}
		for _, step := range []func(context.Context, string, object) error{c.initialize, c.markOwn, c.removeOnRequest, c.markEncryption} {
			if err := step(ctx, name, node); err != nil && ctx.Err() == nil {
				problem("error syncing '%s': %v", name, err)
			}
		}
	})
}

func (c *cluster) deployClasses(ctx context.Context) error {
	if c.disabled("runtimes") {
		return nil
	}
	for _, name := range runtimeClasses {
		class := object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": object{"name": name}, "handler": name}
		if err := c.api.apply(ctx, "/apis/node.k8s.io/v1/runtimeclasses/"+name, class); err != nil {
			return err
		}
	}
	return nil
}

// deployRoles lets the API server call kubelets, and the agents' controller read nodes.
func (c *cluster) deployRoles(ctx context.Context) error {
	const group = "rbac.authorization.k8s.io"
	role := object{
		"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": "system:k3s-controller"},
		"rules": []object{{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": []string{"get", "list", "watch"}}},
	}
	if err := c.api.apply(ctx, "/apis/"+group+"/v1/clusterroles/system:k3s-controller", role); err != nil {
		return err
	}
	for user, role := range map[string]string{"system:k3s-controller": "system:k3s-controller", "kube-apiserver": "system:kubelet-api-admin"} {
		name := map[string]string{"kube-apiserver": "kube-apiserver-kubelet-admin"}[user]
		if name == "" {
			name = user
		}
		binding := object{
			"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name},
			"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": role},
			"subjects": []object{{"apiGroup": group, "kind": "User", "name": user}},
		}
		if err := c.api.apply(ctx, "/apis/"+group+"/v1/clusterrolebindings/"+name, binding); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) deployDNSConfig(ctx context.Context) error {
	config := object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "cluster-dns", "namespace": "kube-system"},
		"data": object{"clusterDNS": strings.Join(c.clusterDNS(), ","), "clusterDomain": c.text("cluster-domain")},
	}
	return c.api.apply(ctx, "/api/v1/namespaces/kube-system/configmaps/cluster-dns", config)
}

// initialize does what K3s' cloud controller does for a new node: name, addresses and labels, after which pods may come.
func (c *cluster) initialize(ctx context.Context, name string, node object) error {
	taints, _ := at(node, "spec", "taints").([]any)
	kept := slices.DeleteFunc(slices.Clone(taints), func(taint any) bool { return at(taint.(object), "key") == uninitialized })
	address := field(node, "metadata", "annotations", "k3s.io/internal-ip")
	if len(kept) == len(taints) || address == "" || c.on("disable-cloud-controller") {
		return nil
	}
	addresses := []object{}
	for _, one := range strings.Split(address, ",") {
		addresses = append(addresses, object{"type": "InternalIP", "address": one})
	}
	if external := field(node, "metadata", "annotations", "k3s.io/external-ip"); external != "" {
		for _, one := range strings.Split(external, ",") {
			addresses = append(addresses, object{"type": "ExternalIP", "address": one})
		}
	}
	addresses = append(addresses, object{"type": "Hostname", "address": field(node, "metadata", "annotations", "k3s.io/hostname")})
	if err := c.api.patch(ctx, "/api/v1/nodes/"+name+"/status", object{"status": object{"addresses": addresses}}); err != nil {
		return err
	}
	info("Initialized node %s with cloud provider", name)
	return c.api.patch(ctx, "/api/v1/nodes/"+name, object{
		"metadata": object{
			"resourceVersion": nil,
			"labels":          object{"node.kubernetes.io/instance-type": "k3s", "beta.kubernetes.io/instance-type": "k3s"},
		},
		"spec": object{"providerID": "k3s://" + name, "taints": kept},
	})
}

// markOwn labels the server's own node, and says which member of etcd it has and whether that votes.
func (c *cluster) markOwn(ctx context.Context, name string, node object) error {
	if name != c.nodeName {
		return nil
	}
	labels, annotations := object{}, object{}
	want := func(wanted object, kind, key, value string) {
		if field(node, "metadata", kind, key) != value {
			wanted[key] = value
		}
	}
	want(labels, "labels", controlPlaneLabel, "true")
	if c.managed {
		member, err := c.memberName(false)
		if err != nil {
			return err
		}
		want(labels, "labels", etcdLabel, "true")
		if field(node, "metadata", "annotations", removedAnnotation) == "" {
			want(annotations, "annotations", memberAnnotation, member)
			want(annotations, "annotations", memberAddressAnnotation, c.address)
		}
	}
	if len(labels)+len(annotations) > 0 {
		if err := c.api.patch(ctx, "/api/v1/nodes/"+name, object{"metadata": object{"labels": labels, "annotations": annotations}}); err != nil {
			return err
		}
	}
	if !c.managed {
		return nil
	}
	return c.markVote(ctx, name, node)
}

func (c *cluster) markVote(ctx context.Context, name string, node object) error {
	members, err := c.etcd.members(ctx)
	if err != nil {
		return err
	}
	own, err := c.memberName(false)
	if err != nil {
		return err
	}
	status, reason, message := "False", "NotAMember", "Node is not a member of the etcd cluster"
	for _, one := range members {
		if one.Name == own && one.IsLearner {
			reason, message = "MemberIsLearner", "Node has not been promoted to voting member of the etcd cluster"
		} else if one.Name == own {
			status, reason, message = "True", "MemberNotLearner", "Node is a voting member of the etcd cluster"
		}
	}
	return c.api.condition(ctx, name, node, "EtcdIsVoter", status, reason, message)
}

// markEncryption says which configuration of encryption the server has, as long as its node does not.
func (c *cluster) markEncryption(ctx context.Context, name string, node object) error {
	if name != c.nodeName || field(node, "metadata", "annotations", hashAnnotation) != "" && c.announced {
		return nil
	}
	c.announced = true
	return c.announceEncryption(ctx, "")
}

// condition sets a condition of a node, unless it is so already.
func (a *apiClient) condition(ctx context.Context, name string, node object, kind, status, reason, message string) error {
	conditions, _ := at(node, "status", "conditions").([]any)
	for _, one := range conditions {
		if known := one.(object); known["type"] == kind && known["status"] == status && known["reason"] == reason {
			return nil
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	change := object{"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now}
	body := object{"status": object{"conditions": []object{change}}}
	_, err := a.do(ctx, http.MethodPatch, "/api/v1/nodes/"+name+"/status", "application/strategic-merge-patch+json", body)
	return err
}

// removeOnRequest removes the member of a node whose annotation asks for it.
func (c *cluster) removeOnRequest(ctx context.Context, name string, node object) error {
	annotations := func(key string) string { return field(node, "metadata", "annotations", key) }
	if !c.managed || strings.ToLower(annotations(removeAnnotation)) != "true" || annotations(removedAnnotation) != "" || annotations(memberAnnotation) == "" {
		return nil
	}
	if err := c.removeMember(ctx, annotations(memberAnnotation), annotations(memberAddressAnnotation)); err != nil {
		return err
	}
	done := object{removedAnnotation: annotations(memberAnnotation), memberAnnotation: nil, memberAddressAnnotation: nil}
	return c.api.patch(ctx, "/api/v1/nodes/"+name, object{"metadata": object{"annotations": done}})
}

// nodeGone removes the password of a node that has been deleted, and its member.
func (c *cluster) nodeGone(ctx context.Context, name string, node object) {
	_, err := c.api.do(ctx, http.MethodDelete, "/api/v1/namespaces/kube-system/secrets/"+name+".node-password.k3s", jsonType, nil)
	if err != nil && !refused(err, http.StatusNotFound) {
		problem("failed to remove node password secret of %s: %v", name, err)
	}
	if !c.managed || field(node, "metadata", "labels", etcdLabel) == "" {
		return
	}
	member := field(node, "metadata", "annotations", memberAnnotation)
	if member == "" {
		return
	}
	info("Removing etcd member %s from cluster", name)
	// etcd refuses it while another member has only just started; K3s' handler is called again until it succeeds.
	for ctx.Err() == nil {
		err := c.removeMember(ctx, member, field(node, "metadata", "annotations", memberAddressAnnotation))
		if err == nil {
			return
		}
		problem("failed to remove etcd member %s: %v", member, err)
		time.Sleep(2 * time.Second)
	}
}
