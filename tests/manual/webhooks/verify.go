// Verifies a post of the service, as the manual shows it.
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// IsGenuine tells whether the service posted this body.
func IsGenuine(secret string, header http.Header, body []byte) bool {
	sent, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-sent)) > 300 {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("webhook-id"), sent, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

// Run by a test: a line of JSON for each post; prints whether it is genuine.
func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var post struct {
			Secret  string
			Headers map[string]string
			Body    []byte
		}
		if err := json.Unmarshal(lines.Bytes(), &post); err != nil {
			panic(err)
		}
		header := http.Header{}
		for name, value := range post.Headers {
			header.Set(name, value)
		}
		fmt.Println(IsGenuine(post.Secret, header, post.Body))
	}
}
