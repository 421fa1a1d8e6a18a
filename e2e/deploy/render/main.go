// SPDX-License-Identifier: Apache-2.0

// Command render does more with a Helm chart than helm template. It reads the values after the chart, checks them
// against the chart's schema, and renders. It decodes every object strictly with Kubernetes' own types, so that an
// unknown field is an error. It prints the objects as one JSON array. It reports an error and exits with 1.
//
// It is a module of its own, because Helm is large and only the test beside it needs Helm.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "render CHART [VALUES.yaml ...]")
		os.Exit(2)
	}
	objects, err := render(os.Args[1], os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(objects)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(dir string, files []string) ([]runtime.Object, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	values := chartutil.Values{}
	for _, file := range files {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		values = chartutil.CoalesceTables(more, values)
	}
	for _, m := range lint.All(dir, values, "yarn", true).Messages {
		if m.Severity >= support.WarningSev {
			return nil, m
		}
	}
	release := chartutil.ReleaseOptions{Name: "fed", Namespace: "yarn", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities) // with the schema
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	types := scheme.Scheme
	if err := monitoring.AddToScheme(types); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Ext(name) != ".yaml" {
			continue // notes
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(texts[name])))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if empty, err := blank(document); err != nil || empty {
				errs = append(errs, err)
				continue
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w\n%s", name, err, document))
				continue
			}
			objects = append(objects, object)
		}
	}
	return objects, errors.Join(errs...)
}

// blank reports whether a document consists of comments only.
func blank(document []byte) (bool, error) {
	var any map[string]any
	err := yaml.Unmarshal(document, &any)
	return any == nil, err
}
