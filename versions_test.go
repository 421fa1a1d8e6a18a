// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/reference/versions.md has each version that the tests and the deployment files name.
func TestVersionsPageIsComplete(t *testing.T) {
	page := string(mustRead(os.ReadFile("docs/reference/versions.md")))
	for _, v := range []struct{ software, file, pattern string }{
		{"Go", "go.mod", `(?m)^go (\d+\.\d+)`},
		{"Hadoop ResourceManager", "e2e/hadoop/pom.xml", `<hadoop>(.*)</hadoop>`},
		{"Hadoop clients, MapReduce", "e2e/hadoop/pom.xml", `<hadoop>(.*)</hadoop>`},
		{"Hadoop ResourceManager", "e2e/hadoop/pom-336.xml", `<hadoop>(.*)</hadoop>`},
		{"Hadoop clients, MapReduce", "e2e/hadoop/pom-336.xml", `<hadoop>(.*)</hadoop>`},
		{"Spark", "e2e/hadoop/python/requirements.txt", `pyspark==(\S+)`},
		{"Spark", "e2e/hadoop/python/spark4.txt", `pyspark==(\S+)`},
		{"Tez", "e2e/hadoop/pom-tez.xml", `<tez>(.*)</tez>`},
		{"Flink", "e2e/hadoop/python/flink.txt", `apache-flink-libraries==(\S+)`},
		{"Skein", "e2e/hadoop/python/skein.txt", `skein==(\S+)`},
		{"Java", "internal/programs/debian.txt", `openjdk-(\d+)-jdk`},
		{"Redis", "docker-compose.yml", `image: redis:(\S+)`},
		{"Prometheus", "docker-compose.yml", `image: prom/prometheus:v(\S+)`},
		{"Grafana", "docker-compose.yml", `image: grafana/grafana:(\S+)`},
	} {
		m := regexp.MustCompile(v.pattern).FindStringSubmatch(string(mustRead(os.ReadFile(v.file))))
		if m == nil {
			t.Errorf("%s names no version of %s", v.file, v.software)
		} else if !strings.Contains(page, "| "+v.software+" | "+m[1]+" |") {
			t.Errorf("%s has %s %s, and docs/reference/versions.md has no such row", v.file, v.software, m[1])
		}
	}
}

func mustRead(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
