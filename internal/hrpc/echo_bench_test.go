// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	vtwrappers "github.com/planetscale/vtprotobuf/types/known/wrapperspb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// BenchmarkEcho compares echoes of 200 bytes through creel's server with a bare framed TCP echo, each server in its
// own process, with the same client. The two are measured alternately, so that other load on the machine affects
// both; results are medians.
//
// To measure an existing server of any kind instead of creel's, set
//
//	HRPC_BENCH_ADDRESS=host:port   where it listens
//	HRPC_BENCH_PROTOCOL=name       the echo's protocol, HRPC_BENCH_METHOD=name its method
//	HRPC_BENCH_PID=n               the process whose CPU seconds are counted
//
// Its method must answer a message whose field 1 has the 200 bytes of the request.
func BenchmarkEcho(b *testing.B) {
	for _, shape := range []struct {
		conns, deep int
	}{{1, 1}, {64, 1}, {16, 32}} {
		for _, method := range []string{"vt", "raw", "stock", "apart", "later"} {
			b.Run(fmt.Sprintf("conns=%d/deep=%d/%s", shape.conns, shape.deep, method), func(b *testing.B) {
				compareEcho(b, shape.conns, shape.deep, method)
			})
		}
	}
}

func compareEcho(b *testing.B, conns, deep int, method string) {
	bare := startProcess(b, "bare")
	protocol, ours := echoProtocol, (*process)(nil)
	if address := os.Getenv("HRPC_BENCH_ADDRESS"); address != "" {
		pid, _ := strconv.Atoi(os.Getenv("HRPC_BENCH_PID"))
		ours = &process{address: address, pid: pid}
		protocol, method = os.Getenv("HRPC_BENCH_PROTOCOL"), os.Getenv("HRPC_BENCH_METHOD")
	} else {
		ours = startProcess(b, "hrpc")
	}
	payload := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, 200))
	request := appendRequestHeader(make([]byte, 4), 7, 0, rawID, nil)
	request = appendCallHeader(request, method, protocol, 1)
	request, _ = appendRaw(request, payload)
	putLength(request)
	plain := make([]byte, 4+200)
	putLength(plain)
	preamble := append(
		hello(authNone),
		appendContextFrame(nil, rawID, connectionContext{effectiveUser: "bench", protocol: protocol})...)

	one := func(p *process, preamble, request []byte) turn { return runTurn(b, p, conns, deep, preamble, request) }
	one(bare, nil, plain) // warm both
	one(ours, preamble, request)
	var ratios, bareRate, oursRate, barePerCPU, oursPerCPU []float64
	b.ResetTimer()
	for range b.N {
		x, y := one(bare, nil, plain), one(ours, preamble, request)
		ratios = append(ratios, y.rate/x.rate)
		bareRate, oursRate = append(bareRate, x.rate), append(oursRate, y.rate)
		barePerCPU, oursPerCPU = append(barePerCPU, x.perCPU), append(oursPerCPU, y.perCPU)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(bareRate), "bare-calls/s")
	b.ReportMetric(median(oursRate), "calls/s")
	b.ReportMetric(100*median(ratios), "%-of-bare")
	b.ReportMetric(median(barePerCPU), "bare-calls/cpu-s")
	b.ReportMetric(median(oursPerCPU), "calls/cpu-s")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// turn is the result of one measurement.
type turn struct {
	rate   float64 // calls a second
	perCPU float64 // calls a CPU second of the server
}

// runTurn keeps conns connections busy for a moment, deep calls at a time each.
func runTurn(b *testing.B, p *process, conns, deep int, preamble, request []byte) turn {
	const moment = 400 * time.Millisecond
	batch := slices.Repeat(request, deep)
	var calls atomic.Int64
	var stop atomic.Bool
	var ready, wg sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(conns)
	for range conns {
		wg.Go(func() {
			nc, err := net.Dial("tcp", p.address)
			if err != nil {
				b.Error(err)
				ready.Done()
				return
			}
			defer nc.Close()
			nc.Write(preamble)
			r := newAnswerReader(nc)
			ready.Done()
			<-begin
			n := 0
			for !stop.Load() {
				if _, err := nc.Write(batch); err != nil {
					b.Error(err)
					return
				}
				for range deep {
					if err := r.next(); err != nil {
						b.Error(err)
						return
					}
				}
				n += deep
			}
			calls.Add(int64(n))
		})
	}
	ready.Wait()
	cpu, t := p.cpu(), time.Now()
	close(begin)
	time.Sleep(moment)
	stop.Store(true)
	wg.Wait()
	took := time.Since(t).Seconds()
	used := p.cpu() - cpu
	out := turn{rate: float64(calls.Load()) / took}
	if used > 0 {
		out.perCPU = float64(calls.Load()) / used
	}
	return out
}

// answerReader skips answers; it is no more than a client must do.
type answerReader struct {
	nc   net.Conn
	buf  []byte
	r, w int
}

func newAnswerReader(nc net.Conn) *answerReader {
	return &answerReader{nc: nc, buf: make([]byte, 32<<10)}
}

func (a *answerReader) next() error {
	for {
		if a.w-a.r >= 4 {
			if end := a.r + 4 + int(binary.BigEndian.Uint32(a.buf[a.r:])); end <= a.w {
				a.r = end
				return nil
			}
		}
		a.w = copy(a.buf, a.buf[a.r:a.w])
		a.r = 0
		n, err := a.nc.Read(a.buf[a.w:])
		if err != nil {
			return err
		}
		a.w += n
	}
}

// process is a server beside us.
type process struct {
	address string
	pid     int
	ask     io.Writer
	answers *bufio.Reader
}

// memory is a server process's memory after a garbage collection.
type memory struct {
	connections   int
	heapAndStacks int64 // bytes in use
	resident      int64 // bytes of the process, with garbage not yet given back
}

func (p *process) memory(t testing.TB) (m memory) {
	t.Helper()
	fmt.Fprintln(p.ask, "memory")
	if _, err := fmt.Fscanln(p.answers, &m.connections, &m.heapAndStacks, &m.resident); err != nil {
		t.Fatal(err)
	}
	return m
}

func measureMemory(connections int) memory {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m := memory{connections: connections, heapAndStacks: int64(s.HeapInuse + s.StackInuse)}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
		m.resident = pages * int64(os.Getpagesize())
	}
	return m
}

// dialMany opens connections, sends a message on each and leaves them open.
func dialMany(t testing.TB, address string, many int, say func(i int) []byte) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, many)
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < many; i += 4 {
				nc, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				nc.Write(say(i))
				conns[i] = nc
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, nc := range conns {
			if nc != nil {
				nc.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return conns
}

// BenchmarkIdleConnection opens 20,000 ready connections, or as many as the limit of open files allows, and reports
// the server's memory per connection.
func BenchmarkIdleConnection(b *testing.B) {
	many := min(20_000, int(raiseFiles())-100)
	s := startProcess(b, "hrpc")
	before := s.memory(b)
	start := time.Now()
	call := callFrame(b, 1, "raw", "hello") // so that buffers were used
	conns := dialMany(b, s.address, many, func(int) []byte { return append(helloAlice(), call...) })
	for _, nc := range conns {
		readFrame(b, nc)
	}
	took := time.Since(start)
	after := s.memory(b)
	if after.connections != many {
		b.Errorf("%d of %d connections are held", after.connections, many)
	}
	for range b.N {
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(after.connections), "held")
	b.ReportMetric(float64(after.heapAndStacks-before.heapAndStacks)/float64(many), "B/conn")
	b.ReportMetric(float64(after.resident-before.resident)/float64(many), "resident-B/conn")
	b.ReportMetric(float64(many)/took.Seconds(), "conns/s")
}

// cpu is user and system seconds used so far.
func (p *process) cpu() float64 {
	if p.pid == 0 {
		return 0
	}
	total := 0.0
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.pid, t.Name()))
		if err != nil {
			continue
		}
		ns, _ := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
		total += ns / 1e9
	}
	return total
}

// startProcess runs this binary again as a server. It ends when its standard
// input does.
func startProcess(b testing.TB, role string) *process {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "HRPC_BENCH_ROLE="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	answers := bufio.NewReader(out)
	line, err := answers.ReadString('\n')
	if err != nil {
		b.Fatalf("the %s process did not start: %v", role, err)
	}
	return &process{address: strings.TrimSpace(line), pid: cmd.Process.Pid, ask: in, answers: answers}
}

// runBenchRole is the main function of the other process.
func runBenchRole(role string) {
	raiseFiles()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if path := os.Getenv("HRPC_BENCH_PROFILE"); path != "" && role == "hrpc" {
		f, err := os.Create(path)
		if err != nil {
			panic(err)
		}
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(l.Addr())
	owner := make(chan owed, 1024) // one goroutine answers all, as the owner of a state does
	go func() {
		for o := range owner {
			o.reply(o.m, nil)
		}
	}()
	s, err := NewServer(benchConfig(owner))
	if err != nil {
		panic(err)
	}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			m := measureMemory(s.Stats().Connections)
			fmt.Println(m.connections, m.heapAndStacks, m.resident)
		}
		cancel()
		l.Close()
	}()
	switch role {
	case "bare":
		bareServer(l)
	case "hrpc":
		if err := s.Run(ctx, l); err != nil {
			panic(err)
		}
	default:
		panic("no such role: " + role)
	}
}

// bareServer answers each frame with itself, as simply and as fast as package
// net can: answers leave together when no request is left in the buffer.
func bareServer(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer nc.Close()
			r, w := bufio.NewReaderSize(nc, 16<<10), bufio.NewWriterSize(nc, 16<<10)
			frame := make([]byte, 16<<10)
			for {
				if _, err := io.ReadFull(r, frame[:4]); err != nil {
					return
				}
				n := int(binary.BigEndian.Uint32(frame))
				if _, err := io.ReadFull(r, frame[4:4+n]); err != nil {
					return
				}
				w.Write(frame[:4+n])
				if r.Buffered() == 0 {
					w.Flush()
				}
			}
		}()
	}
}

// owed is an answer that the owner of some state sends later.
type owed struct {
	reply func(proto.Message, error)
	m     proto.Message
}

func benchConfig(owner chan<- owed) Config {
	echo := func(_ context.Context, m proto.Message) (proto.Message, error) { return m, nil }
	return Config{
		Simple:        true,
		Tokens:        knowsToken,
		IdleThreshold: 1 << 30,
		HandshakeTime: time.Hour,
		Services: []Service{{Protocol: echoProtocol, Version: 1, Methods: map[string]Method{
			"vt": {NewRequest: func() proto.Message { return vtPool.Get().(*vtBytes) }, Serve: echo, Inline: true,
				FreeRequest: func(m proto.Message) { vtPool.Put(m) }},
			"raw": {Raw: func(_ context.Context, b []byte) ([]byte, error) { return b, nil }, Inline: true},
			"stock": {
				NewRequest: func() proto.Message { return new(wrapperspb.BytesValue) },
				Serve:      echo,
				Inline:     true,
			},
			"later": {
				NewRequest: func() proto.Message { return new(vtBytes) },
				Inline:     true,
				Serve: func(ctx context.Context, m proto.Message) (proto.Message, error) {
					owner <- owed{Later(ctx), m}
					return nil, ErrLater
				},
			},
			"apart": {NewRequest: func() proto.Message { return new(vtBytes) }, Serve: echo},
		}}},
	}
}

var vtPool = sync.Pool{New: func() any { return new(vtBytes) }}

// vtBytes is a message with the methods that vtprotobuf generated for it.
type vtBytes struct{ wrapperspb.BytesValue }

func (m *vtBytes) generated() *vtwrappers.BytesValue {
	return (*vtwrappers.BytesValue)(&m.BytesValue)
}

func (m *vtBytes) SizeVT() int { return m.generated().SizeVT() }

func (m *vtBytes) MarshalToSizedBufferVT(b []byte) (int, error) {
	return m.generated().MarshalToSizedBufferVT(b)
}

func (m *vtBytes) UnmarshalVT(b []byte) error { return m.generated().UnmarshalVT(b) }

// raiseFiles raises the limit of open files to the hard limit.
func raiseFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		panic(err)
	}
	want := max(l.Max, 65_536)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want}); err != nil {
		want = l.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want})
	}
	return want
}
