// The heads of answers: what is read of them, and that whatever could be read in two ways is refused.
#include <doctest/doctest.h>

#include <string>

#include "core/io/http/answer_head.h"

using namespace headrace;

TEST_CASE("the fields of a range's answer, in any case and with any blanks") {
  const std::string text =
      "HTTP/1.1 206 Partial Content\r\nCONTENT-length:\t 12 \r\ncontent-Range: bytes 3-14/99\r\nETag:\"a b\"\r\n"
      "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Other:\r\n\r\n";
  const auto head = parse_answer_head(text);
  REQUIRE(head);
  CHECK(head->status == 206);
  CHECK(head->length == 12);
  CHECK(head->range == "bytes 3-14/99");
  CHECK(head->tag == "\"a b\"");
  CHECK(head->modified == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(head->retry_after.empty());
  CHECK_FALSE(head->closes);
  CHECK_FALSE(head->coded);
}

TEST_CASE("errors, closed connections, codings") {
  const auto busy = parse_answer_head("HTTP/1.1 503\r\nRetry-After: 7\r\nConnection: close\r\n\r\n");
  REQUIRE(busy);
  CHECK(busy->status == 503);
  CHECK(busy->retry_after == "7");
  CHECK(busy->closes);
  CHECK_FALSE(busy->length);
  CHECK(parse_answer_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")->coded);
  CHECK(parse_answer_head("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")->coded);
  CHECK_FALSE(parse_answer_head("HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\n\r\n")->coded);
  CHECK_FALSE(parse_answer_head("HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\n\r\n")->closes);
}

TEST_CASE("what two readers might understand differently is refused") {
  for (const std::string text : {
           "HTTP/1.0 206 OK\r\n\r\n",                                            // closes by default
           "HTTP/1.1 2060 OK\r\n\r\n",                                           //
           "HTTP/1.1 20 OK\r\n\r\n",                                             //
           "HTTP/1.1 2 6 OK\r\n\r\n",                                            //
           "ICY 200 OK\r\n\r\n",                                                 //
           "HTTP/1.1 206 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",  //
           "HTTP/1.1 206 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",  //
           "HTTP/1.1 206 OK\r\nContent-Length: 1, 1\r\n\r\n",                    //
           "HTTP/1.1 206 OK\r\nContent-Length: -1\r\n\r\n",                      //
           "HTTP/1.1 206 OK\r\nContent-Length: 0x10\r\n\r\n",                    //
           "HTTP/1.1 206 OK\r\nContent-Length:\r\n\r\n",                         //
           "HTTP/1.1 206 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",    //
           "HTTP/1.1 206 OK\r\nETag: \"a\"\r\nETag: \"b\"\r\n\r\n",              //
           "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-1/2\r\n folded\r\n\r\n",   //
           "HTTP/1.1 206 OK\r\nContent-Length : 1\r\n\r\n",                      //
           "HTTP/1.1 206 OK\r\nno colon\r\n\r\n",                                //
           "HTTP/1.1 206 OK\r\n: no name\r\n\r\n",                               //
           "HTTP/1.1 206 OK\r\nETag: a\rb\r\n\r\n",                              //
           "HTTP/1.1 206 OK\nContent-Length: 1\n\n",                             //
           "HTTP/1.1 206 OK\r\nContent-Length: 1\r\n",                           // no empty line
           "HTTP/1.1 206 OK\r\n\r\nbody",                                        // more than a head
           "\r\nHTTP/1.1 206 OK\r\n\r\n",                                        //
           "",                                                                   //
       }) {
    CAPTURE(text);
    CHECK_FALSE(parse_answer_head(text));
  }
  const std::string zero = std::string("HTTP/1.1 206 OK\r\nETag: a") + '\0' + "b\r\n\r\n";
  CHECK_FALSE(parse_answer_head(zero));
}
