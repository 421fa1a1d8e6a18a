// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/shell"
)

// runFlags are the flags of `creel run`.
type runFlags struct {
	clientFlags
	spec          shell.Spec
	env           []string
	name, queue   string
	program       string
	amMemory      int64
	detach, quiet bool
	timeout       time.Duration
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARGUMENT...]",
		Short:   "run a command in containers, and watch it to its end",
		GroupID: "try",
		Long: `Submits an application whose AM is creel itself: it asks for the containers, runs
the command once in each, and finishes the application. Nothing is repeated: one
failed container makes the application FAILED, after all have completed.

Several words are a program and its arguments, verbatim; one word with spaces is a
line for the shell. The command's output is in the containers' logs.

creel run prints a line when something changes, with the reason while it waits; on
a terminal it rewrites one line.
Ctrl-C kills the application. It exits with 0 if the application succeeded, 8 if
it failed or was killed, 5 if the server became unreachable.

On simulated nodes (creel up, creel nm --simulate) nothing is executed: a
container lasts for CREEL_SIM_MS or the "sleep N" in its command, and fails if the
command is "false" or "exit N", or by CREEL_SIM_EXIT.

Real NodeManagers run creel as the AM. It must reach them, by --program:
  a path on this machine  the default, this very program: the nodes read it from
                          the same path, on this machine or a shared file system
  node:/usr/bin/creel     installed at this path on every node
  http://…, hdfs://…      fetched by the node; hdfs also needs ?size=&timestamp=
The AM calls the scheduler that its node's configuration names
(yarn.resourcemanager.scheduler.address in HADOOP_CONF_DIR), or --scheduler,
where names such as $NM_HOST are of the node: $NM_HOST:8049 is the proxy beside it.`,
		Example: `  creel run -- sleep 2
  creel run --containers 10 --memory 1g --queue root.default -- sh -c 'echo $CONTAINER_ID; uname -a'
  creel run --program node:/usr/bin/creel --scheduler '$NM_HOST:8049' -- ./job.sh`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.register(c)
	fl := c.Flags()
	fl.SetInterspersed(false)
	fl.IntVar(&f.spec.Containers, "containers", 1, "`N` containers")
	f.spec.MemoryMB = 1024
	fl.Var((*megabytes)(&f.spec.MemoryMB), "memory", "memory of each container: `SIZE` in MiB, or with m, g")
	fl.Int64Var(&f.spec.VCores, "vcores", 1, "virtual cores of each container")
	fl.StringArrayVar(&f.env, "env", nil, "environment `NAME=VALUE` of each container; may be repeated")
	fl.StringVar(&f.name, "name", "", "application `NAME` (default: the command)")
	fl.StringVar(&f.queue, "queue", "default", "`QUEUE` to submit to")
	fl.StringVar(&f.program, "program", "", "where real nodes find creel: a `PATH`, node:PATH or URL")
	fl.StringVar(&f.spec.Scheduler, "scheduler", "", "the scheduler's or proxy's `ADDRESS` on real nodes")
	f.amMemory = 256
	fl.Var((*megabytes)(&f.amMemory), "am-memory", "memory of the AM: `SIZE` in MiB, or with m, g")
	fl.BoolVar(&f.detach, "detach", false, "print the application's id and do not watch it")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but how it ended")
	fl.DurationVar(&f.timeout, "timeout", 0, "kill it if it has not ended after this long (default: never)")
	return c
}

// megabytes is a flag in MiB: 512, 512m or 2g.
type megabytes int64

func (m *megabytes) String() string { return fmt.Sprintf("%dm", int64(*m)) }
func (*megabytes) Type() string     { return "size" }

func (m *megabytes) Set(text string) error {
	var n int64
	digits := strings.TrimRight(strings.ToLower(text), "ib")
	factor := int64(1)
	switch {
	case strings.HasSuffix(digits, "g"):
		factor = 1024
		fallthrough
	case strings.HasSuffix(digits, "m"):
		digits = digits[:len(digits)-1]
	}
	if _, err := fmt.Sscanf(digits+" ", "%d ", &n); err != nil || fmt.Sprint(n) != digits || n < 1 || n > 1<<40 {
		return fmt.Errorf("%q is no size: give 512, 512m or 2g", text)
	}
	*m = megabytes(n * factor)
	return nil
}

func (f *runFlags) run(c *cobra.Command, args []string) error {
	f.spec.Command = args
	f.spec.Env = map[string]string{}
	for _, e := range f.env {
		k, v, ok := strings.Cut(e, "=")
		if !ok {
			return usage(fmt.Errorf("--env %q: expected NAME=VALUE", e))
		}
		f.spec.Env[k] = v
	}
	if len(args) == 0 {
		return usage(errors.New("give a command after --; see creel run --help"))
	}
	if err := f.spec.Check(); err != nil {
		return usage(err)
	}
	if err := f.printer.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.fits(ctx); err != nil {
		return err
	}
	id, err := f.submit(ctx)
	if err != nil {
		return err
	}
	if f.detach {
		return printOne(c.OutOrStdout(), f.printer, map[string]string{"id": id.String()}, id.String(),
			func(w io.Writer) error { _, err := fmt.Fprintln(w, id); return err })
	}
	w := runWatch{f: f, id: id, out: c.OutOrStdout(), lines: newProgress(c.OutOrStdout(), 0)}
	if f.printer.format != "table" && f.printer.format != "wide" {
		w.lines = newProgress(c.ErrOrStderr(), 0) // only the document goes to standard output
	}
	w.say("%s is submitted to queue %s", id, f.queue)
	return w.watch(ctx, c.Context(), stop)
}

// submit builds and submits the application.
func (f *runFlags) submit(ctx context.Context) (creel.ApplicationID, error) {
	command, resources, err := f.delivery()
	if err != nil {
		return creel.ApplicationID{}, err
	}
	var fresh struct {
		ID string `json:"application-id"`
	}
	_, err = f.call(ctx, http.MethodPost, "/ws/v1/cluster/apps/new-application", nil, nil, &fresh)
	if err != nil {
		return creel.ApplicationID{}, err
	}
	id, err := creel.ParseApplicationID(fresh.ID)
	if err != nil {
		return id, err
	}
	name := f.name
	if name == "" {
		name = strings.Join(f.spec.Command, " ")
		if len(name) > 60 {
			name = strings.ToValidUTF8(name[:60], "") + "..."
		}
	}
	type entry = map[string]any
	doc := map[string]any{
		"application-id":   fresh.ID,
		"application-name": name,
		"application-type": "CREEL",
		"queue":            f.queue,
		"max-app-attempts": 1, // a second attempt would repeat the command
		"resource":         entry{"memory": f.amMemory, "vCores": 1},
		"am-container-spec": map[string]any{
			"commands":        entry{"command": command},
			"local-resources": entry{"entry": resources},
			"environment": entry{"entry": []entry{
				{"key": shell.EnvSpec, "value": f.spec.Encode()},
			}},
		},
	}
	_, err = f.call(ctx, http.MethodPost, "/ws/v1/cluster/apps", nil, doc, nil)
	return id, err
}

// delivery returns the AM's command on a real node, and the resources that deliver its program.
func (f *runFlags) delivery() (command string, resources []map[string]any, err error) {
	const am = "./creel run-am" + shell.Logs
	resource := func(at string, size, timestamp any) []map[string]any {
		return []map[string]any{{"key": "creel", "value": map[string]any{
			"resource": at, "type": "FILE", "visibility": "APPLICATION", "size": size, "timestamp": timestamp,
		}}}
	}
	if at, ok := strings.CutPrefix(f.program, "node:"); ok {
		if !path.IsAbs(at) || strings.ContainsAny(at, "\"'$`\\ ") {
			return "", nil, usage(fmt.Errorf("--program node:%s: give a whole path without spaces and quotes", at))
		}
		return at + " run-am" + shell.Logs, []map[string]any{}, nil
	}
	if u, err := url.Parse(f.program); err == nil && u.Scheme != "" {
		q := u.Query()
		size, timestamp := q.Get("size"), q.Get("timestamp")
		switch {
		case strings.HasPrefix(u.Scheme, "http"):
			size, timestamp = "-1", "0" // as reported by Hadoop's HTTP file system
		case size == "" || timestamp == "":
			return "", nil, usage(fmt.Errorf(
				"--program %s: say its length in bytes and its time of change in ms, as hdfs dfs -stat '%%b %%Y' prints: ?size=N&timestamp=MS",
				f.program,
			))
		default:
			u.RawQuery = ""
		}
		return am, resource(u.String(), size, timestamp), nil
	}
	at := f.program
	if at == "" {
		if at, err = os.Executable(); err != nil {
			return "", nil, fmt.Errorf("path of this program unknown: %w; name it with --program", err)
		}
	}
	if at, err = filepath.Abs(at); err != nil {
		return "", nil, usage(err)
	}
	info, err := os.Stat(at)
	if err != nil {
		return "", nil, usage(fmt.Errorf("--program: %w", err))
	}
	return am, resource((&url.URL{Scheme: "file", Path: at}).String(), info.Size(), info.ModTime().UnixMilli()), nil
}
