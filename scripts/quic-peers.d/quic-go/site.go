package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// The origins of a page, as lastbyte describes them.
type site struct {
	Site, Group string
	Idle        int64 `json:"idle_ms"`
	Origins     []struct {
		Address, Chain, Key string
		Port                int
	}
}

// What an origin answers, as `site.json` has it.
type answer struct {
	Path, File, Location string
	Fields               []struct{ Name, Value string }
	Recorded             bool
	body                 []byte
}

// Serves a page's origins, each at an address of its own.
func serveSite(path string) error {
	var described site
	if err := read(path, &described); err != nil {
		return err
	}
	var content struct {
		Origins []struct {
			Root    string
			Answers []*answer
		}
	}
	if err := read(filepath.Join(described.Site, "site.json"), &content); err != nil {
		return err
	}
	group, err := curve(described.Group)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for place, origin := range described.Origins {
		certificate, err := tls.LoadX509KeyPair(origin.Chain, origin.Key)
		if err != nil {
			return err
		}
		answers := map[string]*answer{}
		for _, one := range content.Origins[place].Answers {
			if one.File != "" {
				file := filepath.Join(described.Site, content.Origins[place].Root, one.File)
				if one.body, err = os.ReadFile(file); err != nil {
					return err
				}
			}
			answers[one.Path] = one
		}
		server := http3.Server{
			Addr: fmt.Sprintf("%s:%d", origin.Address, origin.Port),
			TLSConfig: http3.ConfigureTLSConfig(&tls.Config{
				Certificates:     []tls.Certificate{certificate},
				CurvePreferences: []tls.CurveID{group},
			}),
			IdleTimeout: time.Duration(described.Idle) * time.Millisecond,
			Handler: http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
				one := answers[request.URL.Path]
				if one == nil {
					http.NotFound(out, request)
					return
				}
				one.write(out, request)
			}),
		}
		go func() { ended <- server.ListenAndServe() }()
	}
	return <-ended
}

func (one *answer) write(out http.ResponseWriter, request *http.Request) {
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
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}
