// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// object has the fields of a Kubernetes object that the tests read.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	// StringData of a Secret: rendered as text, before a cluster encodes it.
	StringData map[string]string
	Spec       struct {
		Selector json.RawMessage // of labels, or of a Service
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } }
		Ports                []struct{ TargetPort any }
	}
}

type pod struct {
	AutomountServiceAccountToken *bool
	HostNetwork                  bool
	SecurityContext              struct{ RunAsNonRoot bool }
	Volumes                      []struct {
		Name      string
		ConfigMap *struct{ Name string }
		Secret    *struct{ SecretName string }
	}
	Containers []struct {
		Name, Image     string
		Args            []string
		Env             []struct{ Name string }
		Ports           []struct{ Name string }
		VolumeMounts    []struct{ Name, MountPath string }
		SecurityContext struct {
			ReadOnlyRootFilesystem, AllowPrivilegeEscalation bool
			Capabilities                                     struct{ Drop []string }
		}
		ReadinessProbe, LivenessProbe map[string]any
	}
}

// selects returns the labels by which an object chooses pods; nil if it chooses none.
func (o *object) selects(t *testing.T) map[string]string {
	var bare map[string]string
	var wrapped struct{ MatchLabels map[string]string }
	if o.Kind == "ServiceMonitor" || len(o.Spec.Selector) == 0 {
		return nil
	}
	if json.Unmarshal(o.Spec.Selector, &bare) == nil {
		return bare
	}
	if err := json.Unmarshal(o.Spec.Selector, &wrapped); err != nil {
		t.Fatal(err)
	}
	return wrapped.MatchLabels
}

func isPart(part, of map[string]string) bool {
	for k, v := range part {
		if of[k] != v {
			return false
		}
	}
	return len(part) > 0
}

// renderer builds, once, the program that renders charts as Helm does and reads the result as Kubernetes does.
func renderer(t *testing.T) string {
	t.Helper()
	var from []byte
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		from = append(from, read(t, "render", name)...)
	}
	dir := hadoop.Cached(t, "helm-render", from, func(dir string) error {
		t.Log("building Helm, two minutes, once")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "render"), ".")
		cmd.Dir, cmd.Stderr = "render", os.Stderr
		return cmd.Run()
	})
	return filepath.Join(dir, "render")
}

const chart = root + "/deploy/helm/creel"

// Four installations, rendered by Helm's own engine and read strictly with Kubernetes' own types: references resolve,
// no container has more rights than it needs, and the binary accepts the command line and configuration of each creel
// container.
func TestTheHelmChart(t *testing.T) {
	render := renderer(t)
	creel := filepath.Join(t.TempDir(), "creel")
	run(t, "go", "build", "-o", creel, root+"/cmd/creel")
	sets, err := filepath.Glob("testdata/helm/*.yaml")
	if err != nil || len(sets) < 4 {
		t.Fatalf("sets of values %q, %v", sets, err)
	}
	roles := map[string]int{}
	for _, values := range sets {
		t.Run(strings.TrimSuffix(filepath.Base(values), ".yaml"), func(t *testing.T) {
			var objects []object
			out, err := exec.CommandContext(t.Context(), render, chart, values).Output()
			if err != nil {
				t.Fatal(err, string(err.(*exec.ExitError).Stderr))
			}
			if err := json.Unmarshal(out, &objects); err != nil {
				t.Fatal(err)
			}
			checkReferences(t, objects, string(read(t, values)))
			for i := range objects {
				o := &objects[i]
				for _, c := range o.Spec.Template.Spec.Containers {
					s := c.SecurityContext
					p := o.Spec.Template.Spec
					if !p.SecurityContext.RunAsNonRoot || !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation ||
						!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || p.AutomountServiceAccountToken == nil ||
						*p.AutomountServiceAccountToken {
						t.Errorf("%s %s may do more than it needs", o.Kind, o.Metadata.Name)
					}
					if c.Name == "redis" {
						continue
					}
					if c.Name != "agent" && (c.ReadinessProbe == nil || c.LivenessProbe == nil) { // an agent serves nothing
						t.Errorf("%s %s has no probes", o.Kind, o.Metadata.Name)
					}
					roles[c.Name]++
					wouldStart(t, creel, objects, o)
				}
			}
		})
	}
	want := map[string]int{"router": 4, "rebalancer": 4, "rm": 5, "proxy": 2, "agent": 3}
	if !maps.Equal(roles, want) {
		t.Errorf("containers %v, not %v", roles, want)
	}
	t.Run("numbers and characters", func(t *testing.T) {
		out := run(t, render, chart, "testdata/helm/production.yaml")
		for _, text := range []string{
			`\u003cvalue\u003e10000000\u003c/value\u003e`, `ops \u0026lt;\u0026amp;\u0026gt; on-call`,
		} {
			if !strings.Contains(out, text) {
				t.Errorf("no ConfigMap has %s", text)
			}
		}
	})
}

// checkReferences checks that every reference to another object resolves.
func checkReferences(t *testing.T, objects []object, values string) {
	named := map[string]bool{}
	var pods []object
	for _, o := range objects {
		if key := o.Kind + "/" + o.Metadata.Name; named[key] {
			t.Errorf("two objects are %s", key)
		} else {
			named[key] = true
		}
		if len(o.Spec.Template.Spec.Containers) > 0 {
			pods = append(pods, o)
		}
	}
	for _, o := range objects {
		if by := o.selects(t); by != nil {
			found := slices.IndexFunc(pods, func(p object) bool { return isPart(by, p.Spec.Template.Metadata.Labels) })
			if found < 0 {
				t.Errorf("%s %s selects no pod", o.Kind, o.Metadata.Name)
				continue
			}
			for _, port := range o.Spec.Ports {
				if !slices.ContainsFunc(pods[found].Spec.Template.Spec.Containers[0].Ports,
					func(p struct{ Name string }) bool { return p.Name == port.TargetPort }) {
					t.Errorf("%s %s leads to port %v, which %s does not have", o.Kind, o.Metadata.Name, port.TargetPort,
						pods[found].Metadata.Name)
				}
			}
		}
		volumes := map[string]bool{}
		for _, v := range o.Spec.VolumeClaimTemplates {
			volumes[v.Metadata.Name] = true
		}
		for _, v := range o.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
			var kind, name string
			switch {
			case v.ConfigMap != nil:
				kind, name = "ConfigMap/", v.ConfigMap.Name
			case v.Secret != nil:
				kind, name = "Secret/", v.Secret.SecretName
			default:
				continue
			}
			// The operator's own are named in the values.
			if !named[kind+name] && !strings.Contains(values, ": "+name) {
				t.Errorf("%s mounts %s%s, which is not there", o.Metadata.Name, kind, name)
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s mounts the volume %s, which it does not have", o.Metadata.Name, m.Name)
				}
			}
		}
	}
}

// wouldStart has the binary read a container's configuration with its command line.
func wouldStart(t *testing.T, creel string, objects []object, o *object) {
	p := o.Spec.Template.Spec
	c := p.Containers[0]
	conf, data := t.TempDir(), t.TempDir()
	files := map[string]string{ // of Hadoop's ResourceManager
		"core-site.xml": "<configuration/>",
		"yarn-site.xml": "<configuration><property><name>yarn.resourcemanager.hostname</name><value>rm.example</value>" +
			"</property></configuration>",
	}
	for _, v := range p.Volumes {
		for _, m := range objects {
			if v.ConfigMap != nil && m.Kind == "ConfigMap" && m.Metadata.Name == v.ConfigMap.Name {
				files = m.Data
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := strings.NewReplacer("/etc/creel-secret/secret", secret, "/etc/creel", conf, "=/data", "="+data)
	args := []string{"config", "check", "--role", c.Args[0]}
	for _, a := range c.Args[1:] {
		args = append(args, inside.Replace(a))
	}
	cmd := exec.CommandContext(t.Context(), creel, args...)
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+map[string]string{"CREEL_STORE": storeURL(t, objects), "POD_IP": "10.1.2.3"}[e.Name])
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), c.Args[0]+" would start") || !strings.Contains(string(out), " 0 unknown") {
		t.Errorf("%s would not start as it is meant to: %v\n%s", o.Metadata.Name, err, out)
	}
}

// storeURL is the one in the chart's Secret, or for a Secret of the operator's, one that he might have.
func storeURL(t *testing.T, objects []object) string {
	for _, o := range objects {
		if url, ok := o.StringData["store-url"]; ok && o.Kind == "Secret" {
			return url
		}
		if text, ok := o.Data["store-url"]; ok && o.Kind == "Secret" {
			url, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return string(url)
		}
	}
	return "redis://redis.example:6379"
}

// Values that cannot work are rejected before installation, with the reason.
func TestTheHelmChartRefuses(t *testing.T) {
	render := renderer(t)
	for values, reason := range map[string]string{
		"{}":                          "where is the state store",
		"store: { url: 'mysql://x' }": "/store/url",
		"store: { url: 'redis://r' }\nrouter: {}":                                                   "router",
		"store: { url: 'redis://r' }\ntrialRedis: { enabled: true }":                                "choose one",
		"store: { url: 'redis://r' }\nsubclusters: [{ id: SC_1 }]":                                  "subclusters",
		"store: { url: 'redis://r' }\nconfig: { yarnSite: { creel.rebalancer.max-change: 0.5 } }":   "creel.rebalancer.max-change",
		"store: { url: 'redis://r' }\nproxies: { enabled: true }\nnetworkPolicy: { enabled: true }": "ipBlock",
		// Kubernetes' own types know no such field.
		"store: { url: 'redis://r' }\nrouters: { affinity: { nodeAfinity: {} } }": `unknown field "spec.template.spec.affinity.nodeAfinity"`,
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), render, chart, file)
		cmd.Stderr = &said
		if err := cmd.Run(); err == nil || !strings.Contains(said.String(), reason) {
			t.Errorf("with %q: %v, %s", values, err, &said)
		}
	}
}
