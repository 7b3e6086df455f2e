// A page's origins, as Go's net/http serves them: HTTP/2 and HTTP/1.1, with its own buffers, windows and session tickets.
//
//	server FILE.json
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

type field struct{ Name, Value string }

type answer struct {
	Path, File, Location string
	Fields               []field
	Recorded             bool
	body                 []byte
}

func read(path string, into any) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	log.SetFlags(0)
	var server struct {
		Site, Group string
		Idle        int64 `json:"idle_ms"`
		Origins     []struct {
			Address, Chain, Key string
			Port                int
		}
	}
	read(os.Args[1], &server)
	var site struct {
		Origins []struct {
			Root    string
			Answers []answer
		}
	}
	read(filepath.Join(server.Site, "site.json"), &site)
	groups := map[string]tls.CurveID{
		"X25519MLKEM768": tls.X25519MLKEM768, "x25519": tls.X25519, "secp256r1": tls.CurveP256, "secp384r1": tls.CurveP384,
	}
	group, known := groups[server.Group]
	if !known {
		log.Fatalf("unknown group %q", server.Group)
	}
	for place, origin := range server.Origins {
		certificate, err := tls.LoadX509KeyPair(origin.Chain, origin.Key)
		if err != nil {
			log.Fatal(err)
		}
		answers := map[string]*answer{}
		var http2 *http.HTTP2Config
		for _, one := range site.Origins[place].Answers {
			if one.File != "" {
				if one.body, err = os.ReadFile(filepath.Join(server.Site, site.Origins[place].Root, one.File)); err != nil {
					log.Fatal(err)
				}
			}
			answers[one.Path] = &one
			if one.Recorded {
				// No field fits the table, so that a response is as long whichever were there before.
				http2 = &http.HTTP2Config{MaxEncoderHeaderTableSize: 1}
			}
		}
		serves := http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
			one := answers[request.URL.Path]
			if one == nil {
				http.NotFound(out, request)
				return
			}
			for _, field := range one.Fields {
				out.Header().Set(field.Name, field.Value)
			}
			if one.Recorded {
				out.Header()["Date"] = nil
				tag := out.Header().Get("etag")
				if tag != "" && request.Header.Get("if-none-match") == tag {
					out.Header().Del("content-type")
					out.WriteHeader(http.StatusNotModified)
					return
				}
			}
			if one.Location != "" {
				out.Header().Set("location", one.Location)
				out.WriteHeader(http.StatusFound)
				return
			}
			out.Header().Set("content-length", fmt.Sprint(len(one.body)))
			out.Write(one.body)
		})
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", origin.Address, origin.Port))
		if err != nil {
			log.Fatal(err)
		}
		serving := &http.Server{
			Handler:     serves,
			IdleTimeout: time.Duration(server.Idle) * time.Millisecond,
			HTTP2:       http2,
			TLSConfig: &tls.Config{
				Certificates:     []tls.Certificate{certificate},
				CurvePreferences: []tls.CurveID{group},
				MinVersion:       tls.VersionTLS13,
			},
		}
		go func() { log.Fatal(serving.ServeTLS(listener, "", "")) }()
	}
	select {}
}
