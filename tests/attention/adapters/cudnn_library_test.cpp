#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/adapters/cudnn/library.h"

namespace longca {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CudnnLibrary, OneThatIsNotThereSaysWhatToInstall) {
  const CudnnLibrary library = load_cudnn("/nowhere/libcudnn.so.9");
  EXPECT_EQ(library.support.code, StatusCode::unavailable);
  EXPECT_THAT(library.support.reason, AllOf(HasSubstr("/nowhere/libcudnn.so.9"),
                                            HasSubstr("install"), HasSubstr("LONGCA_CUDNN")));
  EXPECT_FALSE(library.file.is_open());
}

TEST(CudnnLibrary, AFolderStandsForTheFileInIt) {
  EXPECT_THAT(load_cudnn("/usr").support.reason, HasSubstr("/usr/libcudnn.so.9"));
}

TEST(CudnnLibrary, AnotherLibraryIsRefused) {
  const CudnnLibrary library = load_cudnn("libc.so.6");
  EXPECT_EQ(library.support.code, StatusCode::unavailable);
  EXPECT_THAT(library.support.reason, HasSubstr("libc.so.6 is not cuDNN"));
}

TEST(CudnnLibrary, VersionsReadAsNvidiaWritesThem) {
  EXPECT_EQ(cudnn_version_text(91900), "9.19.0");
  EXPECT_EQ(cudnn_version_text(91002), "9.10.2");
}

}  // namespace
}  // namespace longca
