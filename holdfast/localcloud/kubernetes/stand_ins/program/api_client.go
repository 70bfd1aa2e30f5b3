package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// An apiClient sends requests to the API server. client-go would take several times the memory of what is here.
type apiClient struct {
	server    string
	token     string
	tokenFile string // read for every request: the kubelet renews it
	http      *http.Client
}

// An apiError is an answer other than success.
type apiError struct {
	code int
	body string
}

func (e apiError) Error() string { return fmt.Sprintf("the API server says %d: %s", e.code, e.body) }

// inClusterClient takes what the kubelet gives every container.
func inClusterClient() (*apiClient, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	authority, err := os.ReadFile(serviceAccount + "/ca.crt")
	if err != nil {
		return nil, err
	}
	return newAPIClient("https://"+net.JoinHostPort(host, port), authority, nil, "", serviceAccount+"/token")
}

// A kubeconfig as far as it is of use here: no commands to run, no passwords.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server                   string
			CertificateAuthority     string `json:"certificate-authority"`
			CertificateAuthorityData []byte `json:"certificate-authority-data"`
		}
	}
	Users []struct {
		Name string
		User struct {
			Token, TokenFile      string
			ClientCertificate     string `json:"client-certificate"`
			ClientCertificateData []byte `json:"client-certificate-data"`
			ClientKey             string `json:"client-key"`
			ClientKeyData         []byte `json:"client-key-data"`
		}
	}
}

// kubeconfigClient takes the cluster and the user of the file's current context.
func kubeconfigClient(path string) (*apiClient, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config kubeconfig
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, each := range config.Contexts {
		if each.Name == config.CurrentContext {
			client, err := config.client(each.Context.Cluster, each.Context.User)
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return client, err
		}
	}
	return nil, fmt.Errorf("%s: no context is called %q, which is to be the current one", path, config.CurrentContext)
}

func (k kubeconfig) client(cluster, user string) (*apiClient, error) {
	var authority []byte
	var pairs []tls.Certificate
	server, token, tokenFile := "", "", ""
	for _, each := range k.Clusters {
		if each.Name == cluster {
			server = each.Cluster.Server
			var err error
			if authority, err = dataOrFile(each.Cluster.CertificateAuthorityData, each.Cluster.CertificateAuthority); err != nil {
				return nil, err
			}
		}
	}
	for _, each := range k.Users {
		if each.Name != user {
			continue
		}
		token, tokenFile = each.User.Token, each.User.TokenFile
		certificate, err := dataOrFile(each.User.ClientCertificateData, each.User.ClientCertificate)
		if err != nil {
			return nil, err
		}
		key, err := dataOrFile(each.User.ClientKeyData, each.User.ClientKey)
		if err != nil {
			return nil, err
		}
		if len(certificate) > 0 {
			pair, err := tls.X509KeyPair(certificate, key)
			if err != nil {
				return nil, err
			}
			pairs = []tls.Certificate{pair}
		}
	}
	if server == "" {
		return nil, fmt.Errorf("no cluster is called %q", cluster)
	}
	return newAPIClient(server, authority, pairs, token, tokenFile)
}

func dataOrFile(data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(file)
}

func newAPIClient(server string, authority []byte, pairs []tls.Certificate, token, tokenFile string) (*apiClient, error) {
	var roots *x509.CertPool // nil: those of the machine
	if len(authority) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authority) {
			return nil, errors.New("the certificate authority of the API server is no PEM certificate")
		}
	}
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots, Certificates: pairs, MinVersion: tls.VersionTLS12},
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2: less memory
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		ReadBufferSize:        4096,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       30 * time.Second,
	}
	return &apiClient{server: strings.TrimSuffix(server, "/"), token: token, tokenFile: tokenFile, http: &http.Client{Transport: transport}}, nil
}

// send returns the body of a successful answer. Whoever calls it closes that.
func (c *apiClient) send(ctx context.Context, method, path, contentType string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token := c.token
	if c.tokenFile != "" {
		content, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(content))
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 2000))
		return nil, apiError{code: answer.StatusCode, body: strings.TrimSpace(string(text))}
	}
	return answer.Body, nil
}

func (c *apiClient) get(ctx context.Context, path string, into interface{}) error {
	body, err := c.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}
