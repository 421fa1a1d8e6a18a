// SPDX-License-Identifier: Apache-2.0

package role

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/internal/settings"
)

// hadoopKeyFiles returns the files in which Hadoop's ResourceManagers store the keys of AMs' tokens.
func hadoopKeyFiles(s *settings.Settings) (*keys.HadoopFiles, error) {
	const key = "creel.proxy.hadoop-key-files"
	var files []keys.HadoopFile
	for _, item := range s.List(key) {
		id, path, ok := strings.Cut(item, "=")
		file := keys.HadoopFile{
			Member: creel.SubclusterID(strings.TrimSpace(id)),
			Path:   strings.TrimSpace(path),
		}
		same := func(other keys.HadoopFile) bool { return other.Member == file.Member }
		switch {
		case !ok || file.Member == "" || file.Path == "":
			return nil, s.Problem(key, fmt.Sprintf("%q is not SUBCLUSTER=FILE", item), "")
		case slices.ContainsFunc(files, same):
			return nil, s.Problem(key, fmt.Sprintf("%s is there twice", file.Member), "name one file for each")
		}
		files = append(files, file)
	}
	opened, err := keys.OpenHadoopFiles(files)
	if err != nil {
		return nil, s.Problem(key, err.Error(), "")
	}
	return opened, nil
}

// warnOfOpenFiles logs a warning for key files that every user of this machine can read.
func warnOfOpenFiles(files *keys.HadoopFiles, log *slog.Logger) {
	for _, path := range files.OpenToAll() {
		log.Warn("every user of this machine can read an AM key file and impersonate its AMs",
			"file", path, "try", "let only Hadoop's user and this user read the file, or its directory")
	}
}
