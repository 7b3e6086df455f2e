// TLS 1.3 handshakes of Go's crypto/tls with itself, in memory and on one thread, as measure.py asks for them:
//
//	handshakes FOLDER
//
// FOLDER has a folder of each chain, and of each client's. Both ends are coroutines of one goroutine that keeps its thread, so the thread's clock tells
// what each turn took. The garbage collector has threads of its own, whose time is the first number of an answer.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Before those that count, as in all programs: the runtime's watchdog is busy for so long after a process was idle, as it is between its turns.
const warmUp = 30 * time.Millisecond

var groups = map[string]tls.CurveID{"X25519": tls.X25519, "X25519MLKEM768": tls.X25519MLKEM768}

// Clocks of Linux that package syscall has no names for.
const (
	processTime = 2
	threadTime  = 3
)

func now(clock uintptr) int64 {
	var read syscall.Timespec
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&read)), 0); failed != 0 {
		giveUp(failed)
	}
	return read.Nano()
}

func giveUp(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// An end of a connection in memory. Where there is nothing to read, it is the other end's turn.
type end struct {
	in, out *bytes.Buffer
	yield   func(struct{}) bool
}

func (e *end) Read(to []byte) (int, error) {
	for e.in.Len() == 0 {
		if !e.yield(struct{}{}) {
			return 0, io.EOF
		}
	}
	return e.in.Read(to)
}

func (e *end) Write(from []byte) (int, error)   { return e.out.Write(from) }
func (e *end) Close() error                     { return nil }
func (e *end) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (e *end) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (e *end) SetDeadline(time.Time) error      { return nil }
func (e *end) SetReadDeadline(time.Time) error  { return nil }
func (e *end) SetWriteDeadline(time.Time) error { return nil }

// The first session is offered again and again.
type kept struct{ session *tls.ClientSessionState }

func (k *kept) Get(string) (*tls.ClientSessionState, bool) { return k.session, k.session != nil }
func (k *kept) Put(_ string, session *tls.ClientSessionState) {
	if k.session == nil {
		k.session = session
	}
}

// side is what one end does, until it waits for more than there will be.
func side(e *end, connect func(net.Conn) *tls.Conn, result *error, state *tls.ConnectionState) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		e.yield = yield
		connection := connect(e)
		if *result = connection.Handshake(); *result != nil {
			return
		}
		*state = connection.ConnectionState()
		// A ticket comes behind the handshake.
		connection.Read(make([]byte, 1))
	}
}

func handshake(client, server *tls.Config) (times [2]int64, state tls.ConnectionState) {
	up, down := &bytes.Buffer{}, &bytes.Buffer{}
	var results [2]error
	var states [2]tls.ConnectionState
	ends := [2]*end{{in: down, out: up}, {in: up, out: down}}
	connects := [2]func(net.Conn) *tls.Conn{
		func(under net.Conn) *tls.Conn { return tls.Client(under, client) },
		func(under net.Conn) *tls.Conn { return tls.Server(under, server) },
	}
	var nexts [2]func() (struct{}, bool)
	for which := range ends {
		next, stop := iter.Pull(side(ends[which], connects[which], &results[which], &states[which]))
		nexts[which] = next
		defer stop()
	}
	// Each has begun before it can have nothing to do.
	for turn := 0; turn < 2 || ends[turn%2].in.Len() > 0; turn++ {
		begun := now(threadTime)
		nexts[turn%2]()
		times[turn%2] += now(threadTime) - begun
	}
	for which := range results {
		if results[which] != nil || !states[which].HandshakeComplete {
			giveUp(fmt.Errorf("a handshake: %w", errors.Join(append(results[:], errors.New("is not complete"))...)))
		}
	}
	return times, states[0]
}

func pool(folder, chain string) *x509.CertPool {
	text, err := os.ReadFile(filepath.Join(folder, chain, "root.pem"))
	if err != nil {
		giveUp(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		giveUp(fmt.Errorf("no certificate in root.pem of %s", chain))
	}
	return roots
}

func proof(folder, chain string) []tls.Certificate {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, chain, "chain.pem"), filepath.Join(folder, chain, "key.pem"))
	if err != nil {
		giveUp(err)
	}
	return []tls.Certificate{own}
}

// What it takes to make them is nobody's handshake, and would leave garbage behind.
var made = map[[3]string][2]*tls.Config{}

func configs(folder, group, chain, mode string) (*tls.Config, *tls.Config) {
	name := [3]string{group, chain, mode}
	if both, known := made[name]; known {
		return both[0], both[1]
	}
	curve, known := groups[group]
	if !known {
		giveUp(fmt.Errorf("no group %s", group))
	}
	curves := []tls.CurveID{curve}
	resume := mode == "resumed"
	client := &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: curves, RootCAs: pool(folder, chain), ServerName: "server.example"}
	server := &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: curves, Certificates: proof(folder, chain), SessionTicketsDisabled: !resume}
	if mode == "mutual" {
		client.Certificates = proof(folder, chain+"-client")
		server.ClientAuth = tls.RequireAndVerifyClientCert
		server.ClientCAs = pool(folder, chain+"-client")
	}
	if resume {
		client.ClientSessionCache = &kept{}
	}
	made[name] = [2]*tls.Config{client, server}
	return client, server
}

func batch(folder, group, chain, mode string, count int) {
	client, server := configs(folder, group, chain, mode)
	for begun := now(threadTime); now(threadTime)-begun < warmUp.Nanoseconds(); {
		handshake(client, server)
	}
	answer := make([][2]int64, count)
	process, thread := now(processTime), now(threadTime)
	for number := range answer {
		times, state := handshake(client, server)
		if state.CurveID != groups[group] || state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 || state.DidResume != (mode == "resumed") {
			giveUp(fmt.Errorf("another handshake than asked for: %v, %s", state.CurveID, tls.CipherSuiteName(state.CipherSuite)))
		}
		answer[number] = times
	}
	thread = now(threadTime) - thread
	process = now(processTime) - process
	fmt.Print(max(process-thread, 0))
	for _, times := range answer {
		fmt.Printf(" %d,%d", times[0], times[1])
	}
	fmt.Println()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: handshakes FOLDER")
		os.Exit(2)
	}
	runtime.LockOSThread()
	fmt.Println(strings.TrimPrefix(runtime.Version(), "go"))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var group, chain, mode string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &group, &chain, &mode, &count); err != nil || count < 1 {
			giveUp(fmt.Errorf("not GROUP CHAIN MODE COUNT: %s", lines.Text()))
		}
		batch(os.Args[1], group, chain, mode, count)
	}
}
