// An HTTP/3 server and client on quic-go, as they are without further settings. Both take JSON in a file:
//
//	quic-go server FILE.json
//	quic-go client FILE.json
//	quic-go site FILE.json
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// An end, as lastbyte describes it.
type end struct {
	Address, Group, Secrets string
	// Of a server.
	Chain, Key string
	// Of a client.
	Name, Root string
	Seconds    int
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version())
		return
	}
	if len(os.Args) != 3 {
		log.Fatal("usage: quic-go server|client|site FILE.json")
	}
	if os.Args[1] == "site" {
		log.Fatal(serveSite(os.Args[2]))
	}
	var end end
	if err := read(os.Args[2], &end); err != nil {
		log.Fatal(err)
	}
	switch os.Args[1] {
	case "server":
		log.Fatal(serve(end))
	case "client":
		if err := get(end); err != nil {
			log.Fatal(err)
		}
	default:
		log.Fatalf("unknown end %q", os.Args[1])
	}
}

func serve(end end) error {
	certificate, err := tls.LoadX509KeyPair(end.Chain, end.Key)
	if err != nil {
		return err
	}
	settings, err := settings(end)
	if err != nil {
		return err
	}
	settings.Certificates = []tls.Certificate{certificate}
	server := http3.Server{
		Addr:      end.Address,
		TLSConfig: http3.ConfigureTLSConfig(settings),
		Handler:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	return server.ListenAndServe()
}

func get(end end) error {
	root, err := os.ReadFile(end.Root)
	if err != nil {
		return err
	}
	settings, err := settings(end)
	if err != nil {
		return err
	}
	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM(root) {
		return fmt.Errorf("%s has no certificate", end.Root)
	}
	settings.ServerName = end.Name
	transport := &http3.Transport{
		TLSClientConfig: settings,
		// Names are not looked up.
		Dial: func(context context.Context, _ string, settings *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(context, end.Address, settings, config)
		},
	}
	// It may be slow, as long as it is not stuck: how long a handshake may take is the caller's to say.
	transport.QUICConfig = &quic.Config{HandshakeIdleTimeout: time.Duration(end.Seconds) * time.Second}
	client := http.Client{Transport: transport, Timeout: time.Duration(end.Seconds) * time.Second}
	response, err := client.Get("https://" + end.Name + "/")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func settings(end end) (*tls.Config, error) {
	group, err := curve(end.Group)
	if err != nil {
		return nil, err
	}
	secrets, err := os.OpenFile(end.Secrets, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &tls.Config{CurvePreferences: []tls.CurveID{group}, KeyLogWriter: secrets}, err
}

func curve(group string) (tls.CurveID, error) {
	groups := map[string]tls.CurveID{
		"X25519MLKEM768": tls.X25519MLKEM768, "x25519": tls.X25519, "secp256r1": tls.CurveP256, "secp384r1": tls.CurveP384,
	}
	curve, known := groups[group]
	if !known {
		return 0, fmt.Errorf("unknown group %q", group)
	}
	return curve, nil
}
