package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"tranca/internal/api"
	"tranca/internal/server/listen"
)

// keyNames are what people call a key that they put into an address.
var keyNames = []string{
	"key", "api_key", "apikey", "api-key", "token", "access_token", "auth", "authorization", "password", "secret", "bearer",
}

// admit says why a request may not come in, before anything of it is looked
// at.
func (s *Server) admit(r *http.Request) error {
	peer := listen.PeerOf(r.Context())
	if peer.Local {
		if !peer.Allowed(s.uid) {
			return api.Errorf(api.CodeRefused, "the socket belongs to user %d; you are user %d", s.uid, peer.UID)
		}
		return nil
	}
	if r.URL.Path == "/healthz" {
		return nil
	}
	if s.keyInAddress(r) {
		return api.Errorf(api.CodeUnauthorized, "the key stands in the address, where logs and histories keep it: take a new key, and send it in a header")
	}
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return api.Errorf(api.CodeUnauthorized, "there is no header Authorization")
	}
	if len(all) > 1 {
		return api.Errorf(api.CodeUnauthorized, "there are %d headers Authorization", len(all))
	}
	scheme, key, _ := strings.Cut(all[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return api.Errorf(api.CodeUnauthorized, "the header Authorization does not begin with Bearer")
	}
	if !s.right(key) {
		return api.Errorf(api.CodeUnauthorized, "the key is wrong")
	}
	return nil
}

// right compares keys in a time that tells nothing of them.
func (s *Server) right(key string) bool {
	sum := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(sum[:], s.key[:]) == 1 && s.cfg.Key != ""
}

// keyInAddress reports whether the query holds a key, the right one or any.
func (s *Server) keyInAddress(r *http.Request) bool {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescaped(name), unescaped(value)
		for _, k := range keyNames {
			if strings.EqualFold(name, k) {
				return true
			}
		}
		if s.right(value) {
			return true
		}
	}
	return false
}

// unescaped is text as a query means it; what can't be read is refused later.
func unescaped(text string) string {
	// A plus is one in a key, whatever it stands for in a query.
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
