package docker

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Stats is what an engine counts of a container.
type Stats struct {
	CPU struct {
		Usage struct {
			Total int64 `json:"total_usage"` // nanoseconds
		} `json:"cpu_usage"`
	} `json:"cpu_stats"`
	Memory struct {
		Usage int64 `json:"usage"`
	} `json:"memory_stats"`
	Tasks struct {
		Current int64 `json:"current"`
	} `json:"pids_stats"`
}

// CPUTime is user and system time.
func (s *Stats) CPUTime() time.Duration { return time.Duration(s.CPU.Usage.Total) }

// Stats reads the counters of a container once.
func (c *Client) Stats(ctx context.Context, id string) (Stats, error) {
	var s Stats
	err := c.call(ctx, http.MethodGet, "/containers/"+id+"/stats", url.Values{"stream": {"0"}, "one-shot": {"1"}}, nil, &s)
	return s, err
}
