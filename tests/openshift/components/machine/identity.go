package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	certificates "k8s.io/api/certificates/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
)

// files are kubelet's, where OpenShift has them (its options --bootstrap-kubeconfig, --kubeconfig and --cert-dir).
type files struct{ bootstrap, kubeconfig, certificates string }

func filesOf(root string) files {
	own := filepath.Join(root, "var/lib/kubelet")
	return files{filepath.Join(root, "etc/kubernetes/kubeconfig"), filepath.Join(own, "kubeconfig"), filepath.Join(own, "pki")}
}

func (f files) create() error { return os.MkdirAll(f.certificates, 0o700) }

func subject(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

// clientManager asks with the bootstrap identity as long as there is no certificate, and with its own for the next ones.
func clientManager(f files, name string) (certificate.Manager, error) {
	store, err := certificate.NewFileStore("kubelet-client", f.certificates, f.certificates, "", "")
	if err != nil {
		return nil, err
	}
	return certificate.NewManager(&certificate.Config{
		ClientsetFn: func(current *tls.Certificate) (kubernetes.Interface, error) {
			if current != nil {
				return clientOf(f.kubeconfig)
			}
			return bootstrapClient(f, store.CurrentPath())
		},
		Template:         &x509.CertificateRequest{Subject: subject(name)},
		SignerName:       certificates.KubeAPIServerClientKubeletSignerName,
		GetUsages:        certificate.DefaultKubeletClientGetUsages,
		CertificateStore: store,
	})
}

func clientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// bootstrapClient also writes the own kubeconfig, which leads to the same API server with a certificate that is yet to come.
func bootstrapClient(f files, certificatePath string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.bootstrap)
	if err != nil {
		return nil, err
	}
	own := clientcmdapi.NewConfig()
	own.Clusters["default-cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
	own.AuthInfos["default-auth"] = &clientcmdapi.AuthInfo{ClientCertificate: certificatePath, ClientKey: certificatePath}
	own.Contexts["default-context"] = &clientcmdapi.Context{Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}
	own.CurrentContext = "default-context"
	if err := clientcmd.WriteToFile(*own, f.kubeconfig); err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// servingManager asks with the identity of the Node, which has to exist.
func servingManager(f files, client kubernetes.Interface, name string, address netip.Addr) (certificate.Manager, error) {
	store, err := certificate.NewFileStore("kubelet-server", f.certificates, f.certificates, "", "")
	if err != nil {
		return nil, err
	}
	return certificate.NewManager(&certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return client, nil },
		Template:         &x509.CertificateRequest{Subject: subject(name), DNSNames: []string{name}, IPAddresses: []net.IP{address.AsSlice()}},
		SignerName:       certificates.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store,
	})
}

// ownConfig has the manager's present certificate in each connection, and ends connections when there is a new one, as pkg/kubelet/certificate/transport.go.
func ownConfig(ctx context.Context, f files, manager certificate.Manager) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	trusted, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.kubeconfig, err)
	}
	trusted.Certificates = nil
	trusted.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := manager.Current(); current != nil {
			return current, nil
		}
		return &tls.Certificate{}, nil
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	last := manager.Current()
	go wait.UntilWithContext(ctx, func(context.Context) {
		if current := manager.Current(); current != nil && current != last {
			last = current
			dialer.CloseAll()
		}
	}, time.Second)
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: trusted, DialContext: dialer.DialContext,
	})
	return config, nil
}
