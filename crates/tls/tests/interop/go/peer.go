// The Go peer of the interop tests:
//
//	peer server CHAIN KEY
//	peer client ADDRESS SERVER-NAME ROOT GROUP...
//
// The server prints its address and answers requests until it is ended. The client asks once
// and prints the response. Both print the group of each connection as Go tells it. Files are
// PEM, and groups are decimal code points; without any, Go offers its own choice.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	log.SetFlags(0)
	arguments := os.Args[1:]
	var err error
	switch {
	case len(arguments) == 3 && arguments[0] == "server":
		err = serve(arguments[1], arguments[2])
	case len(arguments) >= 4 && arguments[0] == "client":
		err = ask(arguments[1], arguments[2], arguments[3], arguments[4:])
	default:
		err = errors.New("usage: see the source")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(chain, key string) error {
	certificate, err := tls.LoadX509KeyPair(chain, key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	server := http.Server{
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{certificate},
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("group", uint16(r.TLS.CurveID))
			io.WriteString(w, "hello from Go")
		}),
	}
	return server.ServeTLS(listener, "", "")
}

func ask(address, name, root string, groups []string) error {
	pem, err := os.ReadFile(root)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return errors.New("Go does not take the root")
	}
	for _, group := range groups {
		id, err := strconv.ParseUint(group, 10, 16)
		if err != nil {
			return err
		}
		config.CurvePreferences = append(config.CurvePreferences, tls.CurveID(id))
	}
	client := http.Client{
		Timeout: 20 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: config,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		},
	}
	response, err := client.Get("https://" + name + "/")
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	fmt.Println("group", uint16(response.TLS.CurveID))
	fmt.Println(string(body))
	return nil
}
