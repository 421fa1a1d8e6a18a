// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/spf13/cobra"
)

// upFlags are those of `creel up`.
type upFlags struct {
	daemonFlags
	subclusters int
	nodes       int
	anyPort     bool
}

func upCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:     "up",
		Short:   "a federation on this machine for your own applications",
		GroupID: "try",
		Args:    noArguments,
		Long: `Starts subclusters, two routers and a proxy for each subcluster on loopback and
stays up until Ctrl-C. It prints where everything listens and the lines that
point a client at it, and writes a Hadoop configuration directory for clients
and one for the NodeManagers of each subcluster.

The nodes are simulated: a container "runs" for as long as CREEL_SIM_MS in its
environment says, one second else, and executes nothing. With --nodes 0 there
are none: start Hadoop's own NodeManagers with the directories printed.`,
		RunE: func(c *cobra.Command, _ []string) error { return runUp(c.Context(), &f, c.OutOrStdout()) },
	}
	f.daemonFlags.register(c)
	fl := c.Flags()
	fl.IntVar(&f.subclusters, "subclusters", 3, "subclusters")
	fl.IntVar(&f.nodes, "nodes", 20, "simulated nodes of each subcluster; 0 to bring your own")
	fl.StringVar(&f.store, "store", "memory", "state store `URL`")
	fl.StringVar(&f.data, "data", "", "`DIR` for journals and configuration; a directory removed at the end if empty")
	fl.BoolVar(&f.anyPort, "any-port", false, "let the first router take any free ports instead of YARN's own")
	return c
}

func runUp(ctx context.Context, f *upFlags, out io.Writer) (err error) {
	if f.subclusters < 1 || f.subclusters > 100 || f.nodes < 0 || f.nodes > 20_000 {
		return usage(fmt.Errorf("give 1 to 100 subclusters of at most 20,000 simulated nodes"))
	}
	setUpLogs()
	dir := f.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "creel-up-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	s, err := embeddedSettings(dir, f.confFlags.dir, f.defines)
	if err != nil {
		return err
	}
	store, closeStore, err := openStore(ctx, f.store, s)
	if err != nil {
		return err
	}
	fed, err := newFederation(
		ctx,
		federationConfig{
			subclusters: f.subclusters,
			nodes:       f.nodes,
			routers:     2,
			nodeSize:    creel.NewResource(8192, 8),
			nodeBeat:    time.Second,
			eager:       20 * time.Millisecond,
			dir:         dir,
			store:       store,
			settings:    s,
			ports:       !f.anyPort,
			lease:       5 * time.Second,
			log:         slog.New(atLeast{slog.Default().Handler(), slog.LevelWarn}),
		},
	)
	if err != nil {
		return errors.Join(err, closeStore())
	}
	d := &daemon{entries: fed.entries(), close: []func() error{closeStore}}
	d.parts = append(d.parts, part{"federation", func(ctx context.Context) error {
		defer fed.Close()
		select {
		case <-ctx.Done():
			return nil
		case err := <-fed.failed:
			return err
		}
	}})
	clients := filepath.Join(dir, "client-conf")
	if err := clientConf(clients, fed); err != nil {
		fed.Close()
		return errors.Join(err, closeStore())
	}
	for i := range fed.rms {
		if err := nodeConf(filepath.Join(dir, "nodes-of-"+fed.rms[i].name), fed, i); err != nil {
			fed.Close()
			return errors.Join(err, closeStore())
		}
	}
	f.welcome(out, fed, dir, clients)
	if err := d.debugDoor(s); err != nil {
		return err
	}
	defer ballast()()
	return d.serve(ctx, &f.daemonFlags, true)
}

// welcome prints where everything listens, and how to use it.
func (f *upFlags) welcome(out io.Writer, fed *federation, dir, clients string) {
	fmt.Fprintf(out, "%-14s %-21s %-21s %s\n", "", "RPC", "web", "other")
	for i, r := range fed.routers {
		a := r.parts.entry.Addresses
		fmt.Fprintf(
			out,
			"%-14s %-21s %-21s admin %s\n",
			fmt.Sprintf("router %d", i+1),
			a["client"],
			a["web"],
			a["admin"],
		)
	}
	for i, rm := range fed.rms {
		a := rm.parts.entry.Addresses
		fmt.Fprintf(
			out,
			"%-14s %-21s %-21s scheduler %s, tracker %s, proxy %s\n",
			rm.name,
			a["client"],
			a["web"],
			a["scheduler"],
			a["tracker"],
			fed.proxies[i].parts.entry.Addresses["proxy"],
		)
	}
	web := fed.routers[0].parts.entry.Addresses["web"]
	nodes := fmt.Sprintf("%d simulated nodes in each subcluster; their containers execute nothing.", f.nodes)
	if f.nodes == 0 {
		nodes = "No nodes yet. For each subcluster: HADOOP_CONF_DIR=" + filepath.Join(
			dir,
			"nodes-of-"+fed.rms[0].name,
		) + " yarn nodemanager"
	}
	fmt.Fprintf(out, `
%s

Dashboard       http://%s/
Hadoop clients  export HADOOP_CONF_DIR=%s
                yarn node -list
REST            curl -s http://%s/ws/v1/cluster/metrics
Spark           spark-submit --master yarn --deploy-mode cluster ...
creel           creel subcluster list --server http://%s
`, nodes, web, clients, web, web)
}

// nodeConf writes a directory for Hadoop's NodeManagers of one subcluster:
// their ResourceManager, and the proxy for the masters they run.
func nodeConf(dir string, f *federation, at int) error {
	rm := f.rms[at].parts.entry.Addresses
	return writeSite(dir, [][2]string{
		{"yarn.resourcemanager.address", f.routers[0].parts.entry.Addresses["client"]},
		{"yarn.resourcemanager.resource-tracker.address", rm["tracker"]},
		{"yarn.resourcemanager.scheduler.address", f.proxies[at].parts.entry.Addresses["proxy"]},
		{"yarn.resourcemanager.webapp.address", rm["web"]},
		{"yarn.nodemanager.address", "127.0.0.1:0"},
		{"yarn.nodemanager.localizer.address", "127.0.0.1:0"},
		{"yarn.nodemanager.webapp.address", "127.0.0.1:0"},
		{"yarn.nodemanager.aux-services", "mapreduce_shuffle"},
		{"mapreduce.shuffle.port", "0"},
	})
}

// clientConf writes a directory that points a Hadoop client at the federation.
func clientConf(dir string, f *federation) error {
	router := f.routers[0].parts.entry.Addresses
	return writeSite(dir, [][2]string{
		{"yarn.resourcemanager.address", router["client"]},
		{"yarn.resourcemanager.webapp.address", router["web"]},
		{"yarn.resourcemanager.scheduler.address", f.proxies[0].parts.entry.Addresses["proxy"]},
		{"yarn.resourcemanager.admin.address", router["admin"]},
	})
}

// writeSite writes a configuration directory: yarn-site.xml with properties,
// and the core-site.xml of a machine without HDFS.
func writeSite(dir string, properties [][2]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "yarn-site.xml"), siteXML(properties), 0o600),
		os.WriteFile(filepath.Join(dir, "core-site.xml"), siteXML([][2]string{{"fs.defaultFS", "file:///"}}), 0o600),
		os.WriteFile(
			filepath.Join(dir, "mapred-site.xml"),
			siteXML([][2]string{{"mapreduce.framework.name", "yarn"}}),
			0o600,
		),
	)
}

func siteXML(properties [][2]string) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for _, p := range properties {
		fmt.Fprintf(&b, "  <property><name>%s</name><value>%s</value></property>\n", p[0], p[1])
	}
	b.WriteString("</configuration>\n")
	return []byte(b.String())
}

// atLeast keeps quiet about what is below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(a), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
