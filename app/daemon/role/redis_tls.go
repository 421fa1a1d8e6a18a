// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis"
)

// Keys of TLS to Redis, of the store and of a ResourceManager's state.
const (
	redisTruststore     = "creel.redis.tls.truststore"
	redisTruststoreWord = "creel.redis.tls.truststore-password"
	redisCertificate    = "creel.redis.tls.certificate"
	redisKey            = "creel.redis.tls.key"
	redisKeystore       = "creel.redis.tls.keystore"
	redisKeystoreWord   = "creel.redis.tls.keystore-password"
)

// redisTLS reads the TLS of connections to Redis; nil: the settings name no file.
func redisTLS(s *settings.Settings) (*certs.Trust, error) {
	own := certs.Store{
		Certificate: s.String(redisCertificate), Key: s.String(redisKey), Keystore: s.String(redisKeystore),
	}
	shows := own != certs.Store{}
	switch {
	case !shows && s.String(redisTruststore) == "":
		return nil, nil
	case own.Certificate != "" && own.Key == "":
		return nil, errors.New(redisKey + " is not set")
	case own.Certificate == "" && own.Key != "":
		return nil, errors.New(redisCertificate + " is not set")
	}
	word, err := passwordOf(s, redisTruststoreWord)
	if err != nil {
		return nil, err
	}
	trust, err := certs.OpenTrust(s.String(redisTruststore), word, slog.Default())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redisTruststore, err)
	}
	if !shows {
		return trust, nil
	}
	if own.Password, err = passwordOf(s, redisKeystoreWord); err != nil {
		return nil, err
	}
	return trust, trust.Present(own, time.Now())
}

// incompleteRedisTLS reports settings of TLS to Redis that cannot be used, or that no connection would use.
func incompleteRedisTLS(s *settings.Settings) (bool, string) {
	trust, err := redisTLS(s)
	if err != nil {
		return true, err.Error()
	}
	over := func(key string) bool { return redis.Config{URL: s.String(key)}.OverTLS() }
	if trust != nil && !over("creel.store.url") && !over(stateURL) {
		return true, "creel.store.url is not rediss://, and neither is " + stateURL
	}
	return false, ""
}
