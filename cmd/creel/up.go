// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/settings"
)

// upFlags are the flags of `creel up`.
type upFlags struct {
	daemonFlags
	subclusters int
	nodes       int
	data        string
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
stays up until Ctrl-C. It prints all addresses and the lines that point a
client at it, and writes Hadoop configuration directories: for clients, for the
NodeManagers of each subcluster, and its own without --conf. You are its administrator,
calls may change its queues, nodes may have labels, and alice, bob and carol have groups.

The nodes are simulated: a container "runs" for the CREEL_SIM_MS of its environment,
one second by default, and executes nothing. With --nodes 0 there are none: start
Hadoop's own NodeManagers with the printed directories.

It logs warnings and errors; with -D creel.log.level=info also the rest, with the
audit log of changes.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) },
	}
	f.daemonFlags.register(c)
	fl := c.Flags()
	fl.IntVar(&f.subclusters, "subclusters", 3, "subclusters")
	fl.IntVar(&f.nodes, "nodes", 20, "simulated nodes of each subcluster; 0 to bring your own")
	f.setting(fl, "store", "creel.store.url", "state store `URL`")
	fl.StringVar(&f.data, "data", "", "`DIR` for journals and configuration; a directory removed at the end if empty")
	fl.BoolVar(&f.anyPort, "any-port", false, "let the first router take any free ports instead of YARN's own")
	return c
}

func (f *upFlags) run(ctx context.Context, out io.Writer) (err error) {
	if f.subclusters < 1 || f.subclusters > 100 || f.nodes < 0 || f.nodes > 20_000 {
		return usage(fmt.Errorf("give 1 to 100 subclusters of at most 20,000 simulated nodes"))
	}
	var held daemon.Resources
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Close())
		}
	}()
	dir, err := f.directory(&held)
	if err != nil {
		return err
	}
	own := ""
	if f.confFlags.dir == "" {
		own = filepath.Join(dir, "conf")
		if err := operatorConf(own, ""); err != nil {
			return err
		}
	}
	s, err := federation.Settings(dir, f.confFlags.dir, f.defines, f.flags...)
	if err != nil {
		return err
	}
	if err := setUpLogs(s, settings.RM, settings.Router, settings.Proxy); err != nil {
		return err
	}
	flush, err := tracing.SetUp(ctx, s, "up")
	if err != nil {
		return err
	}
	defer flush()
	store, closeStore, err := role.OpenStore(ctx, s)
	if err != nil {
		return err
	}
	held.OnClose(closeStore)
	fed, err := federation.New(ctx, federation.Config{
		Subclusters:   f.subclusters,
		Nodes:         f.nodes,
		Routers:       2,
		Rebalancers:   1,
		NodeSize:      creel.NewResource(8192, 8),
		NodeHeartbeat: time.Second,
		Eager:         20 * time.Millisecond,
		Dir:           dir,
		Store:         store,
		Settings:      s,
		DefaultPorts:  !f.anyPort,
		Lease:         5 * time.Second,
		Log:           slog.Default(),
	})
	if err != nil {
		return err
	}
	held.OnClose(fed.Close)
	clients := filepath.Join(dir, "client-conf")
	if err := clientConf(clients, fed); err != nil {
		return err
	}
	for i := range fed.RMs {
		if err := nodeConf(filepath.Join(dir, "nodes-of-"+fed.RMs[i].Name), fed, i); err != nil {
			return err
		}
	}
	if own != "" { // the ports are known now
		if err := operatorConf(own, fed.Routers[0].Address("admin")); err != nil {
			return err
		}
	}
	f.welcome(out, fed, dir, clients)
	d := &daemon.Service{Entries: fed.Entries(), Resources: held}
	d.Add("federation", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-fed.Failed():
			return err
		}
	})
	held = daemon.Resources{} // now owned by the service
	return f.daemonFlags.run(ctx, s, d, true)
}

// directory returns the directory of journals and configuration: --data, or a temporary one that is removed at the end.
func (f *upFlags) directory(held *daemon.Resources) (string, error) {
	if f.data != "" {
		return filepath.Abs(f.data)
	}
	dir, err := os.MkdirTemp("", "creel-up-")
	held.OnClose(func() error { return os.RemoveAll(dir) })
	return dir, err
}

// welcome prints all addresses, and how to use them.
func (f *upFlags) welcome(out io.Writer, fed *federation.Federation, dir, clients string) {
	fmt.Fprintf(out, "%-14s %-21s %-21s %s\n", "", "RPC", "web", "other")
	for _, r := range fed.Routers {
		fmt.Fprintf(
			out,
			"%-14s %-21s %-21s admin %s\n",
			r.Name,
			r.Address("client"),
			r.Address("web"),
			r.Address("admin"),
		)
	}
	for i, rm := range fed.RMs {
		fmt.Fprintf(out, "%-14s %-21s %-21s scheduler %s, tracker %s, proxy %s\n", rm.Name, rm.Address("client"),
			rm.Address("web"), rm.Address("scheduler"), rm.Address("tracker"), fed.Proxies[i].Address("proxy"))
	}
	web := fed.Routers[0].Address("web")
	nodes := fmt.Sprintf("%d simulated nodes in each subcluster; their containers execute nothing.", f.nodes)
	if f.nodes == 0 {
		nodes = "No nodes yet. For each subcluster: HADOOP_CONF_DIR=" +
			filepath.Join(dir, "nodes-of-"+fed.RMs[0].Name) + " yarn nodemanager"
	}
	fmt.Fprintf(out, `
%s

Dashboard       http://%s/
Hadoop clients  export HADOOP_CONF_DIR=%s
                yarn node -list
REST            curl -s http://%s/ws/v1/cluster/metrics
Spark           spark-submit --master yarn --deploy-mode cluster ...
A first command creel run --server http://%s --containers 10 -- sleep 2
Why it waits    creel app why ID --server http://%s
Members         creel subcluster list --server http://%s
`, nodes, web, clients, web, web, web, web)
	if f.confFlags.dir == "" {
		fmt.Fprintf(out, "Its settings    %s, for commands with --conf\n", filepath.Join(dir, "conf"))
	}
}

// operatorConf writes yarn-site.xml of the ResourceManagers, with the settings that the guide's commands need, and an
// empty list of hosts to decommission. admin is the address for commands with --conf, "" while it is unknown.
func operatorConf(dir, admin string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	exclude, you := filepath.Join(dir, "exclude"), "root"
	if u, err := user.Current(); err == nil {
		you = u.Username
	}
	if hosts, err := os.OpenFile(exclude, os.O_CREATE|os.O_RDONLY, 0o600); err != nil {
		return err
	} else if err := hosts.Close(); err != nil {
		return err
	}
	properties := [][2]string{
		{"yarn.admin.acl", you},
		{"hadoop.http.staticuser.user", you}, // of the pages
		{"hadoop.user.group.static.mapping.overrides", "alice=analysts;bob=analysts,research;carol=research"},
		{"yarn.scheduler.configuration.store.class", "fs"},
		{"yarn.node-labels.enabled", "true"},
		{"yarn.resourcemanager.nodes.exclude-path", exclude},
	}
	if admin != "" {
		properties = append(properties, [2]string{"yarn.resourcemanager.admin.address", admin})
	}
	return os.WriteFile(filepath.Join(dir, "yarn-site.xml"), siteXML(properties), 0o600)
}

// nodeConf writes a directory for Hadoop's NodeManagers of one subcluster. It names their ResourceManager, and the
// proxy for the AMs that they run.
func nodeConf(dir string, f *federation.Federation, at int) error {
	rm := f.RMs[at]
	return writeSite(dir, [][2]string{
		{"yarn.resourcemanager.address", f.Routers[0].Address("client")},
		{"yarn.resourcemanager.resource-tracker.address", rm.Address("tracker")},
		{"yarn.resourcemanager.scheduler.address", f.Proxies[at].Address("proxy")},
		{"yarn.resourcemanager.webapp.address", rm.Address("web")},
		{"yarn.nodemanager.address", "127.0.0.1:0"},
		{"yarn.nodemanager.localizer.address", "127.0.0.1:0"},
		{"yarn.nodemanager.webapp.address", "127.0.0.1:0"},
		{"yarn.nodemanager.aux-services", "mapreduce_shuffle"},
		{"mapreduce.shuffle.port", "0"},
	})
}

// clientConf writes a directory that points a Hadoop client at the federation.
func clientConf(dir string, f *federation.Federation) error {
	router := f.Routers[0]
	return writeSite(dir, [][2]string{
		{"yarn.resourcemanager.address", router.Address("client")},
		{"yarn.resourcemanager.webapp.address", router.Address("web")},
		{"yarn.resourcemanager.scheduler.address", f.Proxies[0].Address("proxy")},
		{"yarn.resourcemanager.admin.address", router.Address("admin")},
	})
}

// writeSite writes a configuration directory. It contains yarn-site.xml with properties, and the core-site.xml of a
// machine without HDFS.
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
